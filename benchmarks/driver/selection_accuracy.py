# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How near to k the selections stay while a network is trained.

Trains a network on Fashion-MNIST with schemes whose selections hit k more or less well, and shows
how many entries each of them selects in each iteration: the Ok-Topk paper's Figure 6.
"""

import pathlib
import tempfile

from . import arguments, programs, results, show, tables


def add_options(parser):
    """The options of `selection-accuracy`."""
    add_training_options(parser, "selection_accuracy",
                         "ok_topk(local_select=reused, global_select=reused), paper_ok_topk, gaussian_k")
    parser.add_argument("--every", type=arguments.whole, metavar="N", default=1,
                        help="keep every N-th iteration in the CSV file and the picture")


def add_training_options(parser, folder, schemes):
    """The options of every command that trains with several schemes."""
    arguments.add_building(parser, folder, "train_fashion_mnist", "--ranks", "--density", "--algorithm", "--deadline",
                           ranks=4, density=0.01, algorithm=schemes)
    parser.add_argument("--epochs", type=arguments.whole, metavar="E", default=5,
                        help="passes over the training images")
    parser.add_argument("--data", metavar="DIR",
                        help="folder with Fashion-MNIST (default: where Debian installs it)")
    parser.add_argument("--program", type=arguments.program, metavar="PATH",
                        help="train_fashion_mnist (default: built below --build)")


def built(given):
    """train_fashion_mnist, which is built unless it is given."""
    packages = ["openmpi-bin", *([] if given.data else ["dataset-fashion-mnist"])]
    if given.program:
        programs.need_packages(given, packages)
        return given.program
    programs.check_schemes(given.algorithm)
    packages += [*programs.OPEN_MPI, "libtrilinos-kokkos-kernels-dev", "libopenblas0-pthread",
                 "zlib1g-dev"]
    return programs.built(given, "examples", "train_fashion_mnist", packages, *programs.RELEASE,
                          programs.WITH_OPEN_MPI, "-DOKTOPK_ENABLE_BENCHMARKS=OFF"
                          ) / "examples" / "train_fashion_mnist"


def train_each(given, output):
    """Trains with each scheme; gives its name, the file of the option `output` and that of the summary."""
    program = built(given)
    options = ["--density", given.density, "--epochs", given.epochs, *(["--data", given.data] if given.data else [])]
    with tempfile.TemporaryDirectory() as scratch:
        csv, summary = (pathlib.Path(scratch) / each for each in ("csv", "summary"))
        for name in given.algorithm:
            programs.say(f"Training with {name} on {given.ranks} ranks")
            command = programs.on_one_machine(["mpirun.openmpi", "-n", given.ranks, program])
            programs.run([*command, "--algorithm", name, *options, output, csv, "--summary", summary,
                          *arguments.deadline(given), *given.passed_on], f"the training with {name} failed")
            yield name, csv, summary


def run(given):
    """Trains, prints the table and writes the files."""
    programs.set_outputs(given, "selection_accuracy", "selections")
    rows = [{"algorithm": name, **row} for name, log, _ in train_each(given, "--log") for row in results.read(log)]
    title = f"Fashion-MNIST, {given.ranks} ranks, {programs.density_text(given)} ({tables.all_k(rows)})"
    kept = [row for row in rows if (int(row["iteration"]) - 1) % given.every == 0]
    show.report(given, kept, title, "Entries that the schemes select while a network is trained",
                f"Measured: {title}, on {programs.machine()}. One iteration in {given.every}; the band spans 7 of these.",
                table=tables.accuracy(rows))
