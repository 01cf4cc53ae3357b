# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every scheme on an emulated cluster: MPI over TCP, each rank behind a link of a chosen rate.

Each rank lives in a network namespace of its own, joined to a bridge by a link. Needs root,
iproute2 and Open MPI or MPICH. Leaves nothing behind. Unless said otherwise, all schemes of the
newest oktopk_bench under build/ that is for Open MPI; --bench may name one that is for MPICH.
What follows "--" goes to oktopk_bench as it is.
"""

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


def add_options(parser):
    """The options of `network`."""
    parser.add_argument("--rate", choices=RATES, default="1gbit", help="of each link, each way")
    arguments.add(parser, "--ranks", "--length", "--density", "--algorithm", "--steps", "--warmup",
                  "--rounds", "--bench", "--deadline", "--csv", "--plot", ranks=8, length=14728266,
                  density=0.01, steps=10, warmup=3, rounds=1, passed_on=[])
    parser.add_argument("--verify", action="store_true", help="check every result against an "
                        "independent reference, between the iterations")


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


def measure(rate, ranks, program, rounds, schemes, options, scratch):
    """Runs a program with each scheme on the cluster; the rows go to rows.csv in the folder
    `scratch`. Gives the status: what was measured before a failure counts as well."""
    mpi = mpi_of(program)
    command = [*IN_NAMESPACES, "sh", programs.BENCHMARKS / "network" / "cluster.sh", scratch, rate,
               ranks, mpi, launcher_of(mpi, program), rounds, "\n".join(schemes), program, *options]
    with subprocess.Popen(list(map(str, command)), stdout=sys.stderr.fileno()) as cluster:
        try:
            return cluster.wait()
        finally:
            cluster.kill()


def run(given):
    """Measures, prints the table and writes the files."""
    check(given.ranks)
    bench = given.bench or newest_bench()
    launcher_of(mpi_of(bench), bench)
    schemes = given.algorithm or programs.schemes_of(bench)
    if given.plot and pictures.missing():
        programs.fail("--plot needs matplotlib: apt-get install python3-matplotlib")

    options = ["--length", given.length, "--density", given.density, "--steps", given.steps,
               "--warmup", given.warmup]
    options += [] if given.verify else ["--no-verify"]
    programs.note_crowding(given.ranks)
    programs.say(f"Measuring {bench}")
    with tempfile.TemporaryDirectory(prefix="oktopk.", dir="/tmp") as scratch:
        status = measure(given.rate, given.ranks, bench, given.rounds, schemes,
                         [*options, *arguments.deadline(given), *given.passed_on], scratch)
        rows = pathlib.Path(scratch) / "rows.csv"
        if rows.exists() and rows.stat().st_size > 0:
            report(given, rows)
    sys.exit(status)


def report(given, path):
    """The table, the picture and the rows."""
    title = (f"{given.ranks} ranks, links of {arguments.rate_text(given.rate)}, "
             f"n = {given.length:,}, "
             f"density {given.density:g}")
    programs.headline(title, "emulated on ")
    print(tables.steps(results.read(path), given.rate))
    if given.csv:
        shutil.copyfile(path, given.csv)
    if given.plot:
        pictures.draw(results.read(path), given.plot, "Time of an iteration",
                      f"Emulated cluster: {title}; MPI over TCP on {programs.machine()}. Medians "
                      f"of {given.steps * given.rounds} iterations, selection included. dense is "
                      "the MPI library's own allreduce.")
