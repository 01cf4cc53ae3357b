# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loss and accuracy of a training against the words that it sends.

Trains a network on Fashion-MNIST with the same scheme in several formats, or with several schemes,
and shows after each epoch how far the training has come and how many words a rank has sent so far.
"""

from . import programs, results, selection_accuracy, show

PACKED = "ok_topk(format=packed, values={})"
CODECS = ["bfloat16", "fixed8", "fixed4", "fixed2", "sign"]


def add_options(parser):
    """The options of `training`."""
    schemes = ", ".join(["ok_topk", "ok_topk(format=packed)", *map(PACKED.format, CODECS)])
    selection_accuracy.add_training_options(parser, "training", schemes)


def rows_of(name, epochs, iterations):
    """A row for each epoch of a training; `iterations` is their number in all epochs."""
    words, rows = 0.0, []
    for epoch in epochs:
        words += float(epoch["words_per_iteration_mean"]) * iterations / len(epochs)
        rows.append({"algorithm": name, "epoch": epoch["epoch"], "loss": epoch["loss"],
                     "accuracy": epoch["accuracy"], "words_so_far": f"{words:.0f}"})
    return rows


def run(given):
    """Trains, prints the table and writes the files."""
    programs.set_outputs(given, "training", "words")
    rows = []
    for name, csv, summary in selection_accuracy.train_each(given, "--csv"):
        facts = dict(fact.split("=", 1) for fact in reversed(summary.read_text().split()))
        rows += rows_of(name, results.read(csv), int(facts["iterations"]))
    title = f"Fashion-MNIST, {given.ranks} ranks, {programs.density_text(given)}"
    show.report(given, rows, title, "Training against the words that a rank sends",
                f"Measured: {title}, on {programs.machine()}. A mark for each epoch.")
