# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh

# find_nvcc: prints the path of nvcc: $OKTOPK_NVCC, or the one in the PATH, or the newest in /usr/local/cuda*.
find_nvcc() {
  if [ -n "${OKTOPK_NVCC:-}" ]; then
    echo "$OKTOPK_NVCC"
    return 0
  fi
  command -v nvcc && return 0
  for folder in /usr/local/cuda /usr/local/cuda-*; do
    [ ! -x "$folder/bin/nvcc" ] || found=$folder/bin/nvcc
  done
  [ -z "${found:-}" ] || {
    echo "$found"
    return 0
  }
  echo "no nvcc was found in the PATH or in /usr/local/cuda*/bin: install NVIDIA's CUDA toolkit 13, or name it in OKTOPK_NVCC" >&2
  return 1
}
