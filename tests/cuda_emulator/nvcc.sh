#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# nvcc.sh ARGUMENT...: a C++ compiler for CMake. What is compiled goes through nvcc ($OKTOPK_NVCC, else as find_nvcc has
# it), which writes PTX and no machine code: the emulator executes that, and so does any GPU from compute capability 7.5
# on; $OKTOPK_NVCC_CODE adds code and PTX for a GPU, such as sm_80. Everything else, above all linking, is left to the compiler
# of the host ($OKTOPK_HOST_CXX, else g++); programs get the libcudart in $OKTOPK_CUDART, the emulator's, and where that is not
# set the toolkit's, or with `static` its static one.
set -eu
export LC_ALL=C
. "$(dirname "$0")/find_nvcc.sh"
nvcc=$(find_nvcc) || exit 1

compiles=no
for argument in "$@"; do
  case $argument in
    -c) compiles=yes ;;
    --version) exec "$nvcc" --version ;;
  esac
done

left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  left=$((left - 1))
  case $argument in
    -arch=* | -gencode=*) ;; # chosen below
    -extended-lambda | -expt-* | -Wext-lambda-captures-this) [ "$compiles" = no ] || set -- "$@" "$argument" ;;
    -std=gnu++*) set -- "$@" "-std=c++${argument#-std=gnu++}" ;;
    -isystem* | -MD | -MT | -MF) set -- "$@" "$argument" ;;
    -W* | -f* | -m* | -O* | -g* | -pthread | -pedantic*)
      [ "$compiles" = no ] || set -- "$@" -Xcompiler
      set -- "$@" "$argument"
      ;;
    *) set -- "$@" "$argument" ;;
  esac
done

if [ "$compiles" = yes ]; then
  code=${OKTOPK_NVCC_CODE:-}
  # The emulator reads PTX that is not compressed.
  exec "$nvcc" -x cu --extended-lambda -gencode arch=compute_75,code=compute_75 \
    ${code:+-gencode "arch=compute_${code#sm_},code=[$code,compute_${code#sm_}]"} $([ -n "$code" ] || echo --no-compress) \
    -ccbin "${OKTOPK_HOST_CXX:-g++}" "$@"
fi
toolkit=$(dirname "$nvcc")/../lib64
[ "${OKTOPK_CUDART:-}" != static ] ||
  exec "${OKTOPK_HOST_CXX:-g++}" "$@" "-L$toolkit" -lcudart_static -lrt -lpthread -ldl
folder=${OKTOPK_CUDART:-$toolkit}
exec "${OKTOPK_HOST_CXX:-g++}" "$@" "-L$folder" -lcudart "-Wl,-rpath,$folder"
