// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The file of a header-only program that has the catalogue.

#include <oktopk/catalogue/impl.hpp>
