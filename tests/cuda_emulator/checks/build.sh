#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# build.sh SOURCE PROGRAM: compiles and links one of the checks.
set -eu
export LC_ALL=C
compiler=$(dirname "$0")/../nvcc.sh
sh "$compiler" -std=c++20 -O1 -c "$1" -o "$2.o"
sh "$compiler" "$2.o" -o "$2"
