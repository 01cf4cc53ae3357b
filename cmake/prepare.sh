#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# prepare.sh PACKAGES [SOURCE FOLDER TARGET [OPTION...]]: installs what is missing of PACKAGES, each as PACKAGE=PROBE, and
# builds TARGET of SOURCE in FOLDER. For benchmarks/run.py.
set -eu
cd "$(dirname "$0")/.."
. cmake/setup.sh

wanted=$1
shift
packages() {
  for each in $wanted; do
    need "${each%%=*}" "${each#*=}"
  done
}
install_missing packages

if [ $# -gt 0 ]; then
  build_source=$1
  folder=$2
  target=$3
  shift 3
  build "$folder" "$@" -- "$target"
fi
