#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_conv_channels.sh: whether the gradient of a convolution depends on what the memory held before.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need python3-torch 2.6.0+dfsg-7 libdnnl3.6 3.7.2+ds-2
cat >"$scratch/channels.py" <<'EOF'
import torch

torch.set_num_threads(1)


def leave_nan_in_free_memory():
    freed = [torch.full((1 << size,), float("nan")) for size in range(4, 21) for _ in range(6)]
    del freed


def times_not_finite(channels, with_onednn):
    """In how many of 20 tries a gradient by the input is not finite, where input, weights and what comes back are."""
    torch.backends.mkldnn.enabled = with_onednn
    times = 0
    for seed in range(20):
        torch.manual_seed(seed)
        layer = torch.nn.Conv2d(6, channels, 3, padding=1, bias=False)
        images = torch.randn(4, 6, 16, 16, requires_grad=True)
        scores = layer(images)
        back = torch.randn_like(scores)
        leave_nan_in_free_memory()
        scores.backward(back)
        times += not bool(torch.isfinite(images.grad).all())
    return times


print(times_not_finite(16, True), "some" if times_not_finite(13, True) > 5 else "none", times_not_finite(13, False))
EOF
verdict "Conv2d from 6 to 16 channels, to 13, to 13 without oneDNN; times that a gradient is not finite: 0 none 0" \
  "0 some 0" "$(/usr/bin/python3 "$scratch/channels.py" 2>"$scratch/log")"
