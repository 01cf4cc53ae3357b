# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains with PyTorch's DistributedDataParallel and the hook of oktopk_torch, on several processes."""

import pathlib
import re
import sys

import pytest
from conftest import ROOT, succeed

CASES = pathlib.Path(__file__).with_name("ddp_cases.py")
EXAMPLE = ROOT / "examples" / "torch" / "ddp_hook.py"
OWN_LOOP = EXAMPLE.with_name("own_loop.py")


# Those with several schemes run with few ranks: most of the time goes into starting Python with torch.
TRAINING = ["sgd", "adamw", "corrected", "sgd:ok_topk(density=0.05, format=packed, values=bfloat16)", "adamw:gtopk(density=0.05)",
            "sgd:topk_a(density=0.05)", "adamw:ring_chunked(codec=block_float)"]
OTHERS = ["nothing_is_lost", "nothing_is_lost:ok_topk(density=0.05, format=packed, values=fixed4)", "goes_on_to_the_bit",
          "goes_on_to_the_bit:topk_dsa(density=0.1)", "says_what_is_wrong", "refuses_a_state_that_does_not_fit",
          "unused_parameters_lose_nothing", "unused_parameters_lose_nothing:ok_topk(density=0.1, format=packed, values=sign)",
          "unused_parameters_lose_nothing:gtopk(density=0.1)", "an_unused_parameter_gets_all_later",
          "a_use_without_synchronisation_is_none", "a_model_with_a_state_is_copied_and_saved",
          "a_gradient_that_stays_is_not_touched", "a_static_graph_leaves_residuals_of_unused_parameters",
          "a_fault_of_one_rank_comes_to_all", "dense_is_what_ddp_does",
          "momentum_is_that_of_the_optimizer_where_all_is_sent", "averages_by_key_are_those_of_the_hook",
          "averages_by_key_are_those_of_the_hook:ok_topk(format=packed, values=bfloat16)", "averages_by_key_lose_nothing",
          "an_average_of_something_else_is_an_error", "a_scaler_sees_infinities_and_skips_the_step",
          "an_average_that_overflows_in_half_precision_is_skipped",
          "a_step_with_a_fault_is_skipped_on_request", "what_cannot_be_averaged_is_refused_by_name",
          "a_float64_model_and_a_mixed_one_lose_nothing", "densities_follow_a_schedule", "options_of_the_residual_act",
          "a_report_says_what_runs", "a_state_goes_on_with_other_ranks", "what_ddp_offers_trains",
          "what_torch_cannot_write_to_is_an_error", "a_callback_that_would_wait_is_an_error",
          "a_group_that_does_not_do_is_refused", "a_density_is_checked_when_an_averager_is_made",
          "clipping_does_not_see_what_takes_no_part", "a_state_with_a_tensor_in_no_bucket_is_loaded",
          "local_steps_with_an_outer_average_stay_together"]


@pytest.mark.parametrize("ranks, cases", [(2, TRAINING + OTHERS), (3, OTHERS), (4, ["adamw", "goes_on_to_the_bit"])])
def test_cases(ranks, cases):
    said = succeed(sys.executable, CASES, ranks, *cases)
    assert said.splitlines() == cases


@pytest.mark.parametrize("optimizer, ranks, steps", [("sgd", 2, 300), ("adamw", 3, 300), ("sgd", 4, 100)])
def test_example_trains(optimizer, ranks, steps):
    said = succeed(sys.executable, EXAMPLE, "--optimizer", optimizer, "--ranks", ranks, "--steps", steps)
    losses = [float(each) for each in re.findall(r"^step \d+: loss ([0-9.]+), \d+ words a step$", said, re.M)]
    assert len(losses) == steps // 50 + 1
    assert losses[-1] < 0.5 * losses[0], said


@pytest.mark.parametrize("local_steps", [0, 8])
def test_example_without_ddp_trains(local_steps):
    said = succeed(sys.executable, OWN_LOOP, "--ranks", 2, "--local-steps", local_steps)
    losses = [float(each) for each in re.findall(r"^step \d+: loss ([0-9.]+), \d+ words a step$", said, re.M)]
    assert len(losses) == 7 and losses[-1] < 0.5 * losses[0], said
    assert "which is ok_topk: 512 of 10240 values" in said


def test_example_is_short():
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= 40
