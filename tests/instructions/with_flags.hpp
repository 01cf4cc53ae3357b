// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// Wrong masks of the translation unit that is compiled with flags of its own.
int wrong_masks_with_flags();
