#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_adamw_betas.sh: whether torch's Adam takes betas=(0, b2), without a first moment, where 0 is an integer.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need_of_pypi torch==2.15.0
cat >"$scratch/betas.py" <<'EOF'
import torch

said = []
for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.Adamax):
    try:
        kind([torch.nn.Parameter(torch.ones(2))], betas=(0, 0.999))
        said.append("yes")
    except ValueError as error:
        said.append(str(error))
print(", ".join(said), end="")
EOF
verdict "Adam, AdamW, NAdam, Adamax: yes, yes, yes, yes" \
  "betas must be either both floats or both Tensors, betas must be either both floats or both Tensors, yes, yes" \
  "$("$scratch/venv/bin/python3" "$scratch/betas.py" 2>"$scratch/log")"
