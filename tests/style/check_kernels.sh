#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# check_kernels.sh FOLDER: no kernel of the library is a lambda for host and device (docs/backends.md says why).
set -eu
export LC_ALL=C
cd "$1/include"
if grep -rnE 'KOKKOS_(CLASS_)?LAMBDA' .; then
  echo "A kernel of the library is a functor: nvcc's lambdas can crash where several translation units have them." >&2
  exit 1
fi
