#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# prepare.sh [--yes] BUILDS PACKAGES [SOURCE FOLDER TARGET [OPTION...]]: installs what is missing of PACKAGES, with --yes
# without asking, and builds TARGET of SOURCE in FOLDER. Logs go to BUILDS and beside FOLDER. Says nothing about packages
# where none is missing. For benchmarks/run.py.
set -eu
called_from=$(pwd)
cd "$(dirname "$0")/.."
. cmake/setup.sh

if [ "$1" = --yes ]; then
  # shellcheck disable=SC2034
  assume_yes=yes
  shift
fi
choose_builds "$1"
# shellcheck disable=SC2086
find_missing $2
# shellcheck disable=SC2086,SC2154
[ -z "$missing" ] || install_missing $2
shift 2
if [ $# -gt 0 ]; then
  # shellcheck disable=SC2034
  build_source=$1
  folder=$2
  target=$3
  shift 3
  build "$folder" "$@" -- "$target"
fi
