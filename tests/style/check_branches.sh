#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# check_branches.sh FOLDER: no branch on a type asks one of the standard's concepts that has a trait (CONTRIBUTING.md says why).
set -eu
export LC_ALL=C
cd "$1"
if grep -rnE 'if constexpr \(.*std::(integral|floating_point|same_as|derived_from|constructible_from|convertible_to)<' include src; then
  echo "A branch on a type takes a trait: g++ 12 can answer a concept wrongly, and compile the other branch." >&2
  exit 1
fi
