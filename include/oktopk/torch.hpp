// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The adapter for PyTorch's C++ library; with what stands in torch/, the only headers that include headers of torch.

#include <oktopk/torch/process_group.hpp>
#include <oktopk/torch/view.hpp>
