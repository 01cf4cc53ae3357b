# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every scheme on an emulated cluster: MPI over TCP, each rank behind a link of a chosen rate.

Each rank lives in a network namespace of its own, joined to a bridge by a link. Needs root,
iproute2 and Open MPI or MPICH. Leaves nothing behind. Unless said otherwise, all schemes of the
newest oktopk_bench under build/ that is for Open MPI; --bench may name one that is for MPICH.
What follows "--" goes to oktopk_bench as it is.

Besides the schemes of oktopk_bench, --algorithm takes
  dense(mpi=NAME)      the MPI library's allreduce with an algorithm that it has: Open MPI's
                       basic_linear, nonoverlapping, recursive_doubling, ring, rabenseifner and
                       segmented_ring (of segment=BYTES, 1048576 unless given); MPICH's
                       recursive_doubling and reduce_scatter_allgather. dense alone: as it chooses
  gloo/NAME            an algorithm of Gloo's own benchmark (--gloo), for example
                       gloo/new_allreduce_ring. It times calls back to back on rank 0, in place.
                       oktopk_bench lets the ranks meet before each call, takes the slowest rank's
                       time, and copies and checks the values: some 5 % more for the same allreduce.
                       So --back-to-back names a program that measures as Gloo's
"""

import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from . import arguments, pictures, programs, results, tables

# Everything that makes up the cluster lives in namespaces of its own (network, mounts, processes),
# which the kernel takes down with the last process in them, and nothing in them is visible outside.
# `setpriv` and `--kill-child` tie their life to that of this process. So there is nothing to undo
# after a failure, Ctrl-C or even kill -9 (which leaves a small folder in /tmp), and nothing that
# was there before is touched.
IN_NAMESPACES = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid", "--fork",
                 "--kill-child", "--mount-proc"]
TOOLS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux",
         "setpriv": "util-linux"}
RATES = ["100mbit", "1gbit", "10gbit"]
# The algorithms of the allreduce of each MPI library, and what its launcher is told to force one.
# Open MPI's are those of coll_tuned; a segment of 1 MiB is its own choice for a long vector.
FORCED = {
    "open_mpi": {name: "--mca coll_tuned_use_dynamic_rules 1 "
                       f"--mca coll_tuned_allreduce_algorithm {number}"
                 for number, name in enumerate(("basic_linear", "nonoverlapping",
                                                "recursive_doubling", "ring", "segmented_ring",
                                                "rabenseifner"), 1)},
    "mpich": {name: f"-env MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM {name}"
              for name in ("recursive_doubling", "reduce_scatter_allgather")}}
SEGMENT = " --mca coll_tuned_allreduce_algorithm_segmentsize "
FORCING = r"dense\s*\(\s*mpi\s*=\s*(\w+)\s*(?:,\s*segment\s*=\s*([1-9][0-9]*)\s*)?\)"
GLOO = ["new_allreduce_ring", "allreduce_ring_chunked", "allreduce_halving_doubling"]


def add_options(parser):
    """The options of `network`."""
    parser.add_argument("--rate", choices=RATES, default="1gbit", help="of each link, each way")
    arguments.add(parser, "--ranks", "--length", "--density", "--algorithm", "--steps", "--warmup",
                  "--rounds", "--bench", "--deadline", "--csv", "--plot", ranks=8, length=14728266,
                  density=0.01, steps=10, warmup=3, rounds=1, passed_on=[])
    parser.add_argument("--all-dense", action="store_true", help="also every dense allreduce that "
                        "there is: the library's, the MPI library's by each of its algorithms, and "
                        "Gloo's where --gloo is given")
    parser.add_argument("--dense-steps", type=arguments.whole, metavar="S", help="iterations to "
                        "measure of each dense allreduce, which take longer (default: as --steps)")
    parser.add_argument("--back-to-back", type=arguments.program, metavar="PATH", help="the program "
                        "back_to_back, which then measures the dense allreduces without a code, in the "
                        "way of Gloo's benchmark")
    parser.add_argument("--gloo", type=arguments.program, metavar="PATH", help="the program "
                        "`benchmark` of https://github.com/pytorch/gloo")


def need(command, package):
    """The path of a command."""
    path = shutil.which(command)
    if path is None:
        programs.fail(f"needs {command}: install {package} (Debian, Ubuntu: apt-get install "
                      f"{package})")
    return path


def mpi_of(program):
    """The MPI of a program, or None. Debian's libmpich.so.12 is libmpi.so.12 elsewhere."""
    found = re.search(r"^\s*libmpi(ch)?\.so\.([0-9]+)", programs.output_of(["ldd", program]), re.M)
    if not found:
        return None
    return "mpich" if 12 <= int(found[2]) < 20 else "open_mpi"


def newest_bench():
    """The oktopk_bench for Open MPI under build/ that was built last."""
    build = programs.builds()
    found = [path for path in build.rglob("oktopk_bench") if os.access(path, os.X_OK)]
    for path in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True):
        if path.is_file() and mpi_of(path) == "open_mpi":
            return path
    return programs.fail(f"found no oktopk_bench for Open MPI under {build}: build one, or name it "
                         "with --bench")


def launcher_of(mpi, bench):
    """The launcher of an MPI."""
    if mpi == "mpich":
        return need("mpiexec.hydra", "mpich")
    if mpi is None:
        programs.fail(f'"{bench}" was built neither with Open MPI nor with MPICH')
    for path in filter(None, map(shutil.which, ("mpirun.openmpi", "mpirun"))):
        if "Open MPI" in programs.output_of([path, "--version"]):
            return path
    return need("mpirun.openmpi", "openmpi-bin")


def check_root():
    """Fails where nobody but an administrator could make links."""
    if os.geteuid() != 0:
        programs.fail("needs root, to make network namespaces: run it with sudo")


def check(ranks):
    """Fails where links for so many ranks cannot be made here."""
    if not 2 <= ranks <= 200:
        programs.fail(f"--ranks must be a number from 2 to 200, not {ranks}")
    check_root()
    for command, package in TOOLS.items():
        need(command, package)
    if subprocess.run([*IN_NAMESPACES, "true"], capture_output=True, check=False).returncode != 0:
        programs.fail("may not make namespaces here: a container must be privileged for that")
    limited_link = ("ip link add probe type veth peer name other && "
                    "tc qdisc add dev probe root tbf rate 1gbit burst 72k latency 100ms")
    if subprocess.run([*IN_NAMESPACES, "sh", "-c", limited_link], capture_output=True,
                      check=False).returncode != 0:
        programs.fail("the kernel cannot make links of a limited rate (veth, sch_tbf)")


def launch_of(scheme, mpi, program, back_to_back=None, gloo=None, steps=None):
    """The line of a scheme for cluster.sh. `back_to_back` is the program for dense allreduces without a
    code, where they have one of their own; `gloo` are arguments of Gloo's benchmark; `steps` are the
    iterations to measure, where the other arguments do not have them."""
    more = "" if steps is None else f"--steps {steps}"
    forced = re.fullmatch(FORCING, scheme)
    if scheme.startswith("gloo/"):
        if gloo is None:
            programs.fail(f'"{scheme}" needs the program of Gloo: name it with --gloo')
        return f"{scheme}|gloo||{gloo} --iteration-count {steps} {scheme[5:]}|"
    if back_to_back and (forced or scheme in tables.BASELINES):
        program = back_to_back
    if not forced:
        return f"{scheme}|{program}|{scheme}|{more}|"
    name, segment = forced.groups()
    if name not in FORCED[mpi]:
        programs.fail(f'"{scheme}": this MPI has no such allreduce; it has '
                      f"{', '.join(FORCED[mpi])}")
    if segment and name != "segmented_ring":
        programs.fail(f'"{scheme}": only segmented_ring has segments')
    segments = SEGMENT + (segment or "1048576") if name == "segmented_ring" else ""
    return f"{scheme}|{program}|dense|{more}|{FORCED[mpi][name]}{segments}"


def all_dense(mpi, gloo):
    """Every dense allreduce with plain sums: the library's, MPI's and Gloo's."""
    return [*filter(tables.is_baseline, programs.catalogue()),
            *(f"dense(mpi={name})" for name in FORCED[mpi]),
            *(f"gloo/{name}" for name in GLOO if gloo)]


def measure(rate, ranks, mpi, launcher, rounds, launches, options, scratch):
    """Runs programs on the cluster, once a round for each launch. Gives the status, and the rows:
    what was measured before a failure counts as well."""
    schemes = [each.partition("|")[0] for each in launches]
    command = [*IN_NAMESPACES, "sh", programs.BENCHMARKS / "network" / "cluster.sh", scratch, rate,
               ranks, mpi, launcher, rounds, "\n".join(launches), *options]
    with subprocess.Popen(list(map(str, command)), stdout=sys.stderr.fileno()) as cluster:
        try:
            with programs.under_way(lambda: "Measuring on the emulated cluster: still under way"):
                status = cluster.wait()
        finally:
            cluster.kill()
    rows = []
    for number in range(rounds * len(schemes)):
        path = pathlib.Path(scratch) / str(number)
        of = results.read(f"{path}.csv") if path.with_suffix(".csv").exists() else []
        if path.with_suffix(".gloo").exists():
            of = gloo_rows(path.with_suffix(".gloo").read_text(encoding="utf-8"), ranks)
        name = {"algorithm": schemes[number % len(schemes)]}
        rows += [{**name, **row, **name, "rate": rate} for row in of]
    empty = dict.fromkeys((name for row in rows for name in row), "")
    return status, [{**empty, **row} for row in rows]


def gloo_rows(text, ranks):
    """A row of what Gloo's benchmark printed, with the median that it gives. Words and messages
    are the least, as those of MPI's allreduce."""
    rows = []
    for length, micros in re.findall(r"^ *[0-9]+ +([0-9]+) +[0-9]+ +([0-9]+)(?: +[0-9.]+){3,} *$",
                                     text, re.M):
        words = round(2 * int(length) * (ranks - 1) / ranks)
        rows.append({"ranks": ranks, "length": int(length), "k": int(length), "step": 0,
                     "seconds": int(micros) / 1e6, "select_seconds": 0, "back_to_back": 1,
                     "words_sent_max": words, "words_received_max": words,
                     "messages_sent_max": 2 * math.ceil(math.log2(ranks)), "words_are_a_floor": 1})
    if not rows:
        programs.fail(f"Gloo's benchmark printed no times:\n{text}")
    return rows


def run(given):
    """Measures, prints the table and writes the files."""
    check(given.ranks)
    bench = given.bench or newest_bench()
    mpi = mpi_of(bench)
    launcher = launcher_of(mpi, bench)
    if given.back_to_back and mpi_of(given.back_to_back) != mpi:
        programs.fail(f'"{given.back_to_back}" and "{bench}" were built with different MPI libraries')
    schemes = given.algorithm or list(programs.catalogue())
    if given.all_dense:
        schemes += [name for name in all_dense(mpi, given.gloo) if name not in schemes]
    if given.plot and pictures.missing():
        programs.fail("--plot needs matplotlib: apt-get install python3-matplotlib")

    gloo = None
    if given.gloo:
        os.environ["GLOO_BENCHMARK"] = str(given.gloo)
        gloo = f"--no-verify --inputs 1 --elements {given.length} --warmup-iters {given.warmup}"
    launches = [launch_of(scheme, mpi, bench, given.back_to_back, gloo,
                          given.steps if tables.is_sparse(scheme)
                          else given.dense_steps or given.steps) for scheme in schemes]
    options = ["--length", given.length, "--density", given.density, "--warmup", given.warmup, "--no-verify"]
    programs.note_crowding(given.ranks)
    programs.say(f"Measuring {bench}")
    with tempfile.TemporaryDirectory(prefix="oktopk.", dir="/tmp") as scratch:
        status, rows = measure(given.rate, given.ranks, mpi, launcher, given.rounds, launches,
                               [*options, *arguments.deadline(given), *given.passed_on], scratch)
    if rows:
        report(given, rows)
    sys.exit(status)


def report(given, rows):
    """The table, the picture and the rows."""
    title = (f"{given.ranks} ranks, links of {arguments.rate_text(given.rate)}, "
             f"n = {given.length:,}, "
             f"{programs.density_text(given)}")
    programs.headline(title, "emulated on ")
    print(tables.steps(rows))
    if given.csv:
        results.write(given.csv, rows)
    if given.plot:
        pictures.draw(rows, given.plot, "",
                      f"Emulated cluster: {title}; MPI over TCP on {programs.machine()}. Medians, "
                      "selection included. \u00d7: how many times as fast as the best dense "
                      "allreduce.")
