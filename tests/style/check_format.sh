#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# check_format.sh ROOT CLANG_FORMAT [-i]: checks the format of every source file under ROOT, or with -i corrects it.
set -eu
export LC_ALL=C
cd "$1"
clang_format=$2
shift 2
[ $# -gt 0 ] || set -- --dry-run --Werror
find include src python tests examples benchmarks cmake \( -name '*.[ch]pp' -o -name '*.[ch]' \) -exec "$clang_format" "$@" {} +
