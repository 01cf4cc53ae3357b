/* SPDX-FileCopyrightText: 2026 The oktopk authors */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* oktopk/engine.h by a compiler of C: one rank calls most of it. */

#include <oktopk/engine.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, char const* what) {
  if (!holds) {
    fprintf(stderr, "%s: %s\n", what, oktopk_engine_last_error());
    failures += 1;
  }
}

static void heard(void* user, int32_t code, char const* sentence) {
  *(int*)user = code == OKTOPK_ENGINE_OK && sentence[0] == 0;
}

static void named(void* user, char const* name, int64_t length) {
  *(int*)user = strcmp(name, "w") == 0 && length == 4;
}

int main(void) {
  oktopk_engine_group_options ranks;
  oktopk_engine_averager_options how;
  oktopk_engine_arrival call;
  oktopk_engine_loading loading;
  oktopk_engine_bytes state;
  oktopk_engine_figures last;
  oktopk_engine_group* group = NULL;
  oktopk_engine_averager* averager = NULL;
  oktopk_engine_blob* blob = NULL;
  oktopk_engine_contribution entries;
  oktopk_engine_entries* sums = NULL;
  int64_t const indices[] = {7, 2, 7};
  char const* keys[] = {"w"};
  double values[] = {1, -2, 3, -4};
  double norm = 0;
  int told = 0;
  int is_named = 0;

  expect(oktopk_engine_abi() == OKTOPK_ENGINE_ABI, "abi");
  oktopk_engine_group_defaults(&ranks);
  expect(oktopk_engine_group_make(&ranks, &group) == OKTOPK_ENGINE_OK, "group");
  oktopk_engine_averager_defaults(&how);
  how.algorithm = "topk_a(density=0.5)";
  how.sums = OKTOPK_ENGINE_FLOAT64;
  expect(oktopk_engine_averager_make(group, &how, &averager) == OKTOPK_ENGINE_OK, "averager");
  oktopk_engine_arrival_defaults(&call);
  call.values = values;
  call.length = 4;
  call.element = OKTOPK_ENGINE_FLOAT64;
  call.key = "w";
  call.done = &heard;
  call.user = &told;
  expect(oktopk_engine_arrive(averager, &call) == OKTOPK_ENGINE_OK, "arrive");
  expect(oktopk_engine_wait(averager) == OKTOPK_ENGINE_OK && told, "done");
  expect(values[0] == 0 && values[1] == 0 && values[2] == 3 && values[3] == -4, "the two largest");
  expect(oktopk_engine_residual_norm(averager, &norm) == OKTOPK_ENGINE_OK && fabs(norm - sqrt(5)) < 1e-12, "residual");
  expect(oktopk_engine_tensors(averager, &named, &is_named) == OKTOPK_ENGINE_OK && is_named, "tensors");
  expect(oktopk_engine_save(averager, &blob) == OKTOPK_ENGINE_OK, "save");
  expect(oktopk_engine_undo(averager) == OKTOPK_ENGINE_OK, "undo");
  expect(oktopk_engine_residual_norm(averager, &norm) == OKTOPK_ENGINE_OK && norm == 0, "no residual");
  state.data = oktopk_engine_blob_data(blob);
  state.size = oktopk_engine_blob_size(blob);
  oktopk_engine_loading_defaults(&loading);
  loading.states = &state;
  loading.state_count = 1;
  loading.keys = keys;
  loading.key_count = 1;
  expect(oktopk_engine_load(averager, &loading) == OKTOPK_ENGINE_OK, "load");
  expect(oktopk_engine_residual_norm(averager, &norm) == OKTOPK_ENGINE_OK && fabs(norm - sqrt(5)) < 1e-12,
         "residual again");
  last.struct_size = sizeof(last);
  expect(oktopk_engine_last_step(averager, &last) == OKTOPK_ENGINE_OK && last.steps == 1 && last.ranks == 1, "figures");
  values[1] = NAN;
  expect(oktopk_engine_average(averager, &call) == OKTOPK_ENGINE_NON_FINITE, "not finite");
  expect(strstr(oktopk_engine_last_error(), "index 1 of w") != NULL, "sentence");
  oktopk_engine_contribution_defaults(&entries);
  entries.indices = indices;
  entries.values = values + 1;
  entries.count = 3;
  entries.element = OKTOPK_ENGINE_FLOAT64;
  entries.length = 8;
  values[1] = 1;
  values[2] = 2;
  values[3] = 3;
  expect(oktopk_engine_sparse_sum(group, &entries, &sums) == OKTOPK_ENGINE_OK, "sparse sum");
  expect(oktopk_engine_entries_count(sums) == 2 && oktopk_engine_entries_indices(sums)[1] == 7, "entries");
  expect(((double const*)oktopk_engine_entries_values(sums))[1] == 4, "values");
  oktopk_engine_entries_free(sums);
  oktopk_engine_blob_free(blob);
  oktopk_engine_averager_free(averager);
  oktopk_engine_group_free(group);
  expect(oktopk_engine_finalize() == OKTOPK_ENGINE_OK, "finalize");
  return failures;
}
