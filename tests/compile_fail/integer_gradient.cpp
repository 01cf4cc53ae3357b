// expect: satisfaction of 'gradient_value<|does not satisfy 'gradient_value'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Gradients of whole numbers: the compiler must say what a gradient's values may be.

#include <oktopk/format/coo.hpp>

using whole = oktopk::coo<int>;
