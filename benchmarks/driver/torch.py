# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of torch trained with several schemes on an emulated cluster: loss against time and words.

Trains VGG-16, an LSTM or a masked language model (BERT) with train_torch, each rank behind a link
of a chosen rate, and shows loss and accuracy against time and against words, and where the time
went. "+overlap" behind a scheme: in buckets, while the backward pass runs. The links need root and
iproute2; with --rate none the ranks share the machine's memory.
"""

import pathlib
import tempfile

from . import arguments, network, programs, results, show

SOME = "dense, dense+overlap, ok_topk+overlap, ok_topk(format=packed, values=bfloat16)+overlap"
ALL = ("dense, dense+overlap, ring_pipelined+overlap, topk_a, gtopk, gaussian_k, topk_dsa, ok_topk, "
       "ok_topk+overlap, ok_topk(format=packed, values=bfloat16), "
       "ok_topk(format=packed, values=bfloat16)+overlap")
WORKLOADS = ("vgg16", "lstm", "bert")


def add_options(parser):
    """The options of `torch`."""
    parser.add_argument("--workload", choices=WORKLOADS, default="vgg16", help="what is trained")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=arguments.positive, metavar="M",
                        help="of each scheme's run in all, a tenth of it at most for evaluations "
                        "(default: 0.5)")
    length.add_argument("--iterations", type=arguments.whole, metavar="N",
                        help="of training with each scheme, in place of --minutes")
    parser.add_argument("--rate", choices=[*network.RATES, "none"], default="1gbit",
                        help="of each link, each way; none: no links")
    parser.add_argument("--size", type=arguments.positive, metavar="F", default=1.0,
                        help="factor of the widths of the network")
    arguments.add_building(parser, "torch", "train_torch", "--ranks", "--deadline", ranks=4)
    schemes = parser.add_mutually_exclusive_group()
    arguments.add(schemes, "--algorithm")
    schemes.add_argument("--all", action="store_true", help="all schemes of the paper, and more (without it and --algorithm: " + SOME + ")")
    parser.add_argument("--text", metavar="FILE",
                        help="a text for lstm and bert (default: the King James Bible)")
    parser.add_argument("--program", type=arguments.program, metavar="PATH",
                        help="train_torch (default: built below --build)")


def built(given):
    """train_torch, which is built unless it is given."""
    packages = ["openmpi-bin"]
    if given.workload == "vgg16":
        packages += ["dataset-fashion-mnist"]
    else:
        packages += [] if given.text else ["bible-kjv", "bible-kjv-text"]
    packages += [] if given.rate == "none" else ["iproute2"]
    if given.program:
        programs.need_packages(given, packages)
        if network.mpi_of(given.program) != "open_mpi":
            programs.fail(f"{given.program} was not built with Open MPI, whose mpirun starts it")
        return given.program
    programs.check_schemes(name.removesuffix("+overlap") for name in given.algorithm)
    packages += [*programs.OPEN_MPI, "libtorch-dev", "libgloo-dev", "zlib1g-dev"]
    return programs.built(given, "torch", "train_torch", packages, *programs.RELEASE,
                          programs.WITH_OPEN_MPI, "-DOKTOPK_ENABLE_BENCHMARKS=OFF"
                          ) / "examples" / "torch" / "train_torch"


def text_of(given, scratch):
    """The file of the text that the networks learn."""
    if given.text:
        return given.text
    text = programs.output_of(["bible", "-f", "gen1:1-rev22:21"])
    if len(text) < 1000000:
        programs.fail("the program bible gives no text: install bible-kjv and bible-kjv-text, or "
                      "name a file with --text")
    # Without the place that each line begins with.
    path = pathlib.Path(scratch) / "text"
    path.write_text("\n".join(line.partition(" ")[2] for line in text.splitlines()),
                    encoding="utf-8")
    return path


def train(given, program, options, scratch):
    """Trains with each scheme; gives the rows."""
    rows = []
    if given.rate != "none":
        launches = [network.launch_of(name, "open_mpi", program) for name in given.algorithm]
        status, rows = network.measure(given.rate, given.ranks, "open_mpi",
                                       network.launcher_of("open_mpi", program), 1, launches, options,
                                       scratch)
        if status != 0:
            programs.fail("the training failed")
        return rows
    csv = pathlib.Path(scratch) / "one.csv"
    for name in given.algorithm:
        programs.say(f"Training with {name} on {given.ranks} ranks")
        command = programs.on_one_machine(["mpirun.openmpi", "-n", given.ranks, program])
        programs.run([*command, *options, "--algorithm", name, "--csv", csv],
                     f"the training with {name} failed")
        rows += results.read(csv)
    return rows


def run(given):
    """Trains, prints the table and writes the files."""
    if not given.algorithm:
        given.algorithm = arguments.names(ALL if given.all else SOME)
    programs.set_outputs(given, "torch", given.workload)
    if given.rate != "none":
        network.check_root()
    program = built(given)
    if given.rate != "none":
        network.check(given.ranks)
    programs.note_crowding(given.ranks)
    with tempfile.TemporaryDirectory(prefix="oktopk.", dir="/tmp") as scratch:
        options = ["--workload", given.workload, "--size", given.size]
        options += (["--iterations", given.iterations] if given.iterations
                    else ["--minutes", given.minutes or 0.5])
        options += [] if given.workload == "vgg16" else ["--text", text_of(given, scratch)]
        rows = train(given, program, [*options, *arguments.deadline(given), *given.passed_on], scratch)
    links = "one machine" if given.rate == "none" else f"links of {arguments.rate_text(given.rate)}"
    title = (f"{given.workload}, {int(rows[0]['parameters']):,} parameters, {given.ranks} ranks, "
             f"{links}, density {float(rows[0]['density']):g}")
    show.report(given, rows, title, f"Training of {given.workload} with several schemes",
                f"{title}; all ranks on {programs.machine()}, so that computation takes longer than on a cluster. Time of "
                "evaluations is not counted.", "" if given.rate == "none" else "emulated on ")

