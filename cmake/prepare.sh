#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# prepare.sh PACKAGES [SOURCE FOLDER TARGET [OPTION...]]: installs what is missing of PACKAGES and builds TARGET of
# SOURCE in FOLDER. For benchmarks/run.py.
set -eu
cd "$(dirname "$0")/.."
. cmake/setup.sh

# shellcheck disable=SC2086
install_missing $1
shift
if [ $# -gt 0 ]; then
  # shellcheck disable=SC2034
  build_source=$1
  folder=$2
  target=$3
  shift 3
  build "$folder" "$@" -- "$target"
fi
