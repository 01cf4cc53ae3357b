#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_sparse_adam_empty.sh: whether SparseAdam takes a sparse gradient without entries, as a rank has one whose samples
# have touched no row of a table.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need python3-torch 1.13.1+dfsg-4
cat >"$scratch/empty.py" <<'EOF'
import torch

said = []
for rows in ([[1.0, 2.0, 3.0]], []):
    table = torch.nn.Embedding(5, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    values = torch.tensor(rows).reshape(-1, 3)
    table.weight.grad = torch.sparse_coo_tensor(torch.zeros(1, len(rows), dtype=torch.long), values, (5, 3))
    try:
        optimizer.step()
        said.append("yes")
    except RuntimeError as error:
        said.append(str(error))
print(", ".join(said), end="")
EOF
verdict "one row, none: yes, yes" \
  "yes, The size of tensor a (3) must match the size of tensor b (0) at non-singleton dimension 1" \
  "$(/usr/bin/python3 "$scratch/empty.py" 2>"$scratch/log")"
