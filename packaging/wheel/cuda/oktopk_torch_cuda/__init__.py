# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine of oktopk_torch for GPUs of NVIDIA. There is nothing to call: oktopk_torch loads it where tensors lie on one."""

import pathlib

ENGINE = str(pathlib.Path(__file__).with_name("liboktopk_engine_cuda.so.1"))
