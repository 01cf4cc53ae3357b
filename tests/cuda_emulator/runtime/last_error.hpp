// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include <cuda_runtime_api.h>

namespace cuda_emulator {

// Keeps an error for cudaGetLastError() and returns it.
cudaError_t remembered(cudaError_t error);

} // namespace cuda_emulator
