// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// libcuda has nothing of its own: what programs seek in it is in libcudart.
