// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fashion {

/// Gives every rank its share of the machine's cores inside the BLAS, where that is OpenBLAS and the user has not said
/// otherwise in the environment. Ranks that each use all cores slow one another down many times.
void share_cores_among(int ranks_on_this_machine);

} // namespace fashion
