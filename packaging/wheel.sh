#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh packaging/wheel.sh [--build FOLDER]: builds the wheel of oktopk_torch in dist/: one for every Linux on x86-64 with
# glibc 2.28 or newer, every Python and every torch. Kokkos and the standard library of C++ are inside of the
# engine, and tools come from PyPI, all pinned: two builds have the same bytes, wherever they run. CMAKE_ARGS in the
# environment goes to CMake, as -DFETCHCONTENT_SOURCE_DIR_KOKKOS=PATH for sources that are there. Downloads and objects
# go to build/wheel, or to FOLDER/wheel.
#
# Needs Python 3.11 or newer with venv and pip (Debian and Ubuntu: python3-venv), and no compiler: that is zig's clang,
# which links for any older glibc.
#
# sh packaging/wheel.sh --cuda [--build FOLDER]: that of oktopk_torch_cuda, the engine for GPUs of NVIDIA, with nvcc 13 and g++ of
# this machine, and for its glibc and newer ones. Objects go to build/wheel-cuda, or to FOLDER/wheel-cuda.
set -eu
called_from=$(pwd)
cd "$(dirname "$0")/.."
. cmake/setup.sh

folder=
kind=
while [ $# -gt 0 ]; do
  case $1 in
    --build)
      [ $# -ge 2 ] || fail "--build needs a folder"
      shift
      folder=$1
      ;;
    --cuda) kind=-cuda ;;
    *) fail "no such option: $1 (the first lines of the script name them)" ;;
  esac
  shift
done
[ "$(uname -sm)" = "Linux x86_64" ] || fail "it builds on Linux on x86-64, and this is $(uname -sm)"
python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  fail "it needs Python 3.11 or newer with venv (Debian and Ubuntu: python3-venv)"
choose_builds "$folder"
folder=$(cd "$builds" && pwd)/wheel$kind
mkdir -p "$folder"

say "Installing the tools of packaging/wheel/requirements.txt"
rm -rf "$folder/tools"
python3 -m venv "$folder/tools"
attended "$folder/tools/bin/python" -m pip --disable-pip-version-check --quiet install --require-hashes \
  --only-binary :all: --requirement packaging/wheel/requirements.txt
builder=packaging/wheel/build$(echo "$kind" | tr - _).py
say "Compiling, for some ten minutes on two cores; the log is $folder/log"
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(cores)}"
attended "$folder/tools/bin/python" "$builder" "$folder" >"$folder/log" 2>&1 || {
  tail -n 40 "$folder/log" >&2
  fail "the build failed (all it said is in $folder/log)"
}
say "$(tail -n 1 "$folder/log")"
