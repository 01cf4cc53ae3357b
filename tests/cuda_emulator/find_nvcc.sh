# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh

# find_nvcc: prints the path of nvcc: $OKTOPK_NVCC, or the one in the PATH, or the newest in /usr/local/cuda*. What is
# found may be a script that calls the nvcc of a toolkit; the path printed is the toolkit's, with its headers beside it.
find_nvcc() {
  found=${OKTOPK_NVCC:-$(command -v nvcc || true)}
  if [ -z "$found" ]; then
    for folder in /usr/local/cuda /usr/local/cuda-*; do
      [ ! -x "$folder/bin/nvcc" ] || found=$folder/bin/nvcc
    done
  fi
  if [ -z "$found" ]; then
    echo "no nvcc was found in the PATH or in /usr/local/cuda*/bin: install NVIDIA's CUDA toolkit 13, or name it in OKTOPK_NVCC" >&2
    return 1
  fi
  toolkit=$("$found" --dryrun -x cu -E /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
  if [ ! -f "$toolkit/include/cuda_runtime_api.h" ]; then
    echo "$found is no nvcc of a whole toolkit: there is no ${toolkit:-toolkit}/include/cuda_runtime_api.h" >&2
    return 1
  fi
  echo "$(cd "$toolkit" && pwd -P)/bin/nvcc"
}
