# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks benchmarks/torch/peers.py on two ranks: dense sums learn as DDP does, and each scheme has its rows."""

import csv
import json
import subprocess
import sys

from conftest import ROOT, SECONDS

JOB = {"workload": "bert", "size": 0.05, "batch": 4, "tested": 1, "words": 40, "learning_rate": 1e-3, "seed": 1,
       "iterations": 6, "every": 3}
CLIPPED = [("ddp", 0), ("ok_topk", 0.05), ("ok_topk(density=0.05, format=packed)", 0.5)]
SCHEMES = [("ddp", 0), ("dense", 0), ("ok_topk", 0.05), ("powersgd(rank=1, start=2)", 0)]
DIRECTIONS = [("ddp", 0), ("adam(dense)", 0), ("adam(ok_topk)", 0.05), ("adam(ok_topk(density=1, fill=true))", 0.05)]


def test_peers_learn_and_are_counted(tmp_path):
    text = tmp_path / "text"
    text.write_text(" ".join(chr(97 + i * i % 23) * (1 + i % 3) for i in range(60000)), encoding="ascii")
    jobs = [{**JOB, "kind": "train", "scheme": scheme, "density": density} for scheme, density in SCHEMES]
    jobs += [{**JOB, "kind": "train", "workload": "lstm", "scheme": scheme, "density": density, "learning_rate": rate,
              "clip": clip, "known": 3}
             for scheme, density in CLIPPED for rate, clip in ((10, 0.5), (0, 0.5), (10, 1e-9))]
    jobs += [{**JOB, "kind": "train", "workload": "mini_long", "width": 8, "layers": 1, "context": 6, "betas": (0.9, 0.95),
              "warm": 2, "cosine": True, "scheme": scheme, "density": density} for scheme, density in DIRECTIONS]
    jobs.append({**JOB, "kind": "time", "schemes": SCHEMES, "rounds": 1, "ahead": 4, "steps": 2})
    for kind in ("train", "time"):
        (tmp_path / kind).write_text("".join(json.dumps(job) + "\n" for job in jobs if job["kind"] == kind), "ascii")
        subprocess.run([sys.executable, ROOT / "benchmarks" / "torch" / "peers.py", "--ranks", "2", "--text", text,
                        "--jobs", tmp_path / kind, "--store", tmp_path / f"{kind}.store",
                        "--csv", tmp_path / f"{kind}.csv"], check=True, timeout=SECONDS)
    trained, timed = (list(csv.DictReader((tmp_path / f"{kind}.csv").open(encoding="ascii")))
                      for kind in ("train", "time"))
    of_directions = trained[-2 * len(DIRECTIONS):]
    loss = {row["scheme"]: float(row["test_loss"]) for row in of_directions}
    assert [row["iteration"] for row in of_directions] == ["3", "6"] * len(DIRECTIONS)
    assert abs(loss["adam(ok_topk(density=1, fill=true))"] - loss["adam(dense)"]) < 1e-3 < abs(loss["adam(dense)"] - loss["ddp"])
    of_lstm = trained[2 * len(SCHEMES):-2 * len(DIRECTIONS)]  # has the rows behind the known ones alone
    trained = trained[:2 * len(SCHEMES)]
    assert [row["iteration"] for row in of_lstm] == ["6"] * 3 * len(CLIPPED)
    for learned, still, clipped in (of_lstm[i:i + 3] for i in range(0, len(of_lstm), 3)):
        assert learned["test_loss"] != still["test_loss"] == clipped["test_loss"]
    # The density of the text goes before that of the workload.
    assert of_lstm[3]["test_loss"] == of_lstm[6]["test_loss"]
    last = {row["scheme"]: row for row in trained}
    assert [row["iteration"] for row in trained] == ["3", "6"] * len(SCHEMES)
    assert last["dense"]["test_loss"] == last["ddp"]["test_loss"] != last["ok_topk"]["test_loss"]
    # Each of two ranks sends n; what else uses this machine's loopback meanwhile comes on top.
    assert {row["scheme"]: float(row["words"]) > int(row["parameters"]) for row in timed}["ddp"]
    assert [row["scheme"] for row in timed] == [scheme for scheme, _ in SCHEMES]
