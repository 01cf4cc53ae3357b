/* SPDX-FileCopyrightText: 2026 The oktopk authors */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program of C, which links the engine. */
#include <oktopk/engine.h>

int main(void) {
  oktopk_engine_group_options ranks;
  oktopk_engine_group* group = 0;
  oktopk_engine_group_defaults(&ranks);
  return oktopk_engine_abi() == OKTOPK_ENGINE_ABI && oktopk_engine_group_make(&ranks, &group) == OKTOPK_ENGINE_OK ? 0
                                                                                                                  : 1;
}
