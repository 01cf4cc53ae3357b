#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/openmpi_oversubscribe.sh: which variable lets more ranks start than there are cores, and what is said of it.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need openmpi-bin 6.0.0~rc2-2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# starts NAME=VALUE...: whether one rank more than there are cores starts with these variables, and whether a warning comes.
starts() {
  env "$@" mpirun.openmpi -n $(($(nproc) + 1)) true >"$scratch/said" 2>&1 && result=starts || result=refused
  ! grep -q deprecated "$scratch/said" || result="$result, warns"
  printf '%s; ' "$result"
}

verdict "Open MPI 4's variable: starts; 5's: starts; 6's: starts; 5's and 6's: starts, warns; " \
  "Open MPI 4's variable: refused; 5's: starts, warns; 6's: starts; 5's and 6's: starts; " \
  "Open MPI 4's variable: $(starts OMPI_MCA_rmaps_base_oversubscribe=1)$(
    )5's: $(starts PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)$(
    )6's: $(starts PRTE_MCA_mapby=:oversubscribe)$(
    )5's and 6's: $(starts PRTE_MCA_mapby=:oversubscribe PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)"
