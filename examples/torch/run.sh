#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh examples/torch/run.sh [--workload vgg16|lstm|bert] [--minutes M] [OPTION...]: trains a network of torch with dense
# allreduce and with Ok-Topk on 4 ranks, each behind an emulated link of 1 Gbit/s where this user may make one, and prints
# a table; half a minute in all for each of four schemes. Installs what is missing on Debian and Ubuntu; on a terminal it asks
# first, unless --yes is among the OPTIONs. All OPTIONs are those of `benchmarks/run.py torch`.
set -eu
called_from=$(pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
(
  cd "$root"
  . cmake/setup.sh
  for argument in "$@"; do
    # shellcheck disable=SC2034
    [ "$argument" != --yes ] || assume_yes=yes
  done
  choose_builds ""
  install_missing python3 python3-matplotlib
)
# Links need root and the tools for them.
links=
if [ "$(id -u)" != 0 ] || ! unshare --mount --net --pid --fork true 2>/dev/null; then
  links="--rate none"
fi
# shellcheck disable=SC2086
exec python3 "$root/benchmarks/run.py" torch $links "$@"
