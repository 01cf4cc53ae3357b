# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The schemes on the simulated network of Piz Daint.

Runs oktopk_bench on SimGrid's simulation of MPI (SMPI) over the network of Piz Daint: the
communication part of the Ok-Topk paper's Figure 12, the weak scaling of BERT (n = 133547324,
density 1 %). Times are simulated times of communication; computation takes none.
"""

import os
import pathlib
import re
import subprocess
import tempfile

from . import arguments, pictures, programs, results, tables

HERE = programs.ROOT / "benchmarks" / "simulated"
BERT = 133547324  # parameters of BERT in the paper (Table 2)
DENSITY = 0.01
WARMUP = 5  # the first iterations make regions anew in turn: these are not measured
TITLE = "Communication of BERT's gradient over the number of ranks"
NOTE = ("Simulated (SimGrid) on the network of Piz Daint: communication only, computation takes no "
        f"time. n = {BERT:,}, {{}}.")
# By how much n is divided, as 16 GiB of memory allow at 256 ranks (see README.md), and bytes an
# entry and rank as measured: a constant, and a part for each rank.
SCALES = {"ok_topk": 32, "paper_ok_topk": 32, "topk_a": 256, "gaussian_k": 512}
BYTES = {"ok_topk": (14, 0), "paper_ok_topk": (14, 0), "topk_a": (16, 0.14),
         "gaussian_k": (16, 0.45)}
# Nodes of a group of the dragonfly, and ranks on those of a group where one is not enough.
GROUP = 384
RANKS_OF_GROUP = 256
# Links share their bandwidth evenly and have no latency but their own (CM02, without TCP's
# acknowledgements): SMPI's own model multiplies both by factors of a cluster with Ethernet, by
# message size. 0.5 us of software a message.
MODEL = ["--log=root.thres:warning", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:0",
         "--cfg=smpi/simulate-computation:no", "--cfg=smpi/os:0:2.5e-7:0",
         "--cfg=smpi/ois:0:2.5e-7:0", "--cfg=smpi/or:0:2.5e-7:0", "--cfg=smpi/coll-selector:mpich"]


def add_options(parser):
    """The options of `simulated`."""
    schemes = "dense,dense_rabenseifner,dense_bfloat16,topk_a,gaussian_k,topk_dsa,gtopk,ok_topk"
    arguments.add_building(parser, "simulated", "oktopk_bench", "--algorithm", "--steps", "--deadline", algorithm=schemes,
                           steps=2)
    parser.add_argument("--ranks", type=arguments.wholes, metavar="LIST",
                        default="32,64,128,256", help="numbers of ranks")
    parser.add_argument("--scale", type=arguments.whole, metavar="FACTOR",
                        help="simulate n / FACTOR entries on links of bandwidth / FACTOR (default: "
                        "by scheme what 256 ranks can do in 16 GiB: 32 for ok_topk, 256 for "
                        "topk_a, 512 for gaussian_k, else 128; in proportion for more ranks)")
    parser.add_argument("--density", type=arguments.share, default=DENSITY, metavar="D",
                        help="share of the entries to select (default: %(default)s)")
    parser.add_argument("--allreduce", metavar="NAME", default="rab_rdb",
                        help="what MPI_Allreduce does, in SMPI's words; rab_rdb is Rabenseifner's")
    parser.add_argument("--platform", type=pathlib.Path, metavar="FILE",
                        default=HERE / "piz_daint.xml",
                        help="of SimGrid, with hosts nid0, nid1, ..., of which "
                        f"each {GROUP} are a group")


def check_memory(name, base, ranks, length):
    """Refuses what would not fit into memory."""
    own, other = BYTES.get(base, (28, 0))
    needed = ranks * (length * (own + other * ranks) + 5e6) / 2**30
    meminfo = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
    available = int(re.search(r"^MemAvailable: *(\d+)", meminfo, re.M)[1]) / 2**20
    if needed > available:
        programs.fail(f"{name} on {ranks} ranks needs about {needed:.1f} GiB of memory, but only "
                      f"{available:.1f} are free: take a larger --scale")


def scaled(platform, factor):
    """The platform with all bandwidths divided by a factor."""
    return re.sub(r'(?<= bw=")[0-9.]+', lambda bw: f"{float(bw[0]) / factor:.6g}", platform)


def nodes(ranks):
    """The node of each rank: those of one group, or the same number in each of several."""
    groups = 1 if ranks <= GROUP else -(-ranks // RANKS_OF_GROUP)
    share = -(-ranks // groups)
    return [rank // share * GROUP + rank % share for rank in range(ranks)]


def simulate(given, scratch, bench, name, ranks, factor):
    """The row of one scheme on some ranks."""
    (scratch / "platform.xml").write_text(scaled(given.platform.read_text(), factor))
    (scratch / "hosts").write_text("".join(f"nid{node}\n" for node in nodes(ranks)))
    kokkos = ";".join(re.findall(r"kokkos\S* => (\S+)", programs.output_of(["ldd", bench])))
    # Each rank needs the state of Kokkos for itself, as it has the program's.
    private = [f"--cfg=smpi/privatize-libs:{kokkos}"] if kokkos else []
    programs.run(["smpirun", "-np", ranks, "-platform", scratch / "platform.xml",
                  "-hostfile", scratch / "hosts", *MODEL, f"--cfg=smpi/allreduce:{given.allreduce}",
                  # smpirun cuts arguments at blanks.
                  *private, bench, "--algorithm", name.replace(" ", ""), "--length", BERT // factor,
                  "--density", given.density, "--warmup", WARMUP, "--steps", given.steps, "--no-verify",
                  "--csv", scratch / "steps.csv",
                  # A rank with a time limit asks again and again, which SMPI lets take time.
                  *(arguments.deadline(given) or ["--deadline", "0"]), *given.passed_on],
                 f"the simulation of {name} on {ranks} ranks failed",
                 f"Simulating {name} on {ranks} ranks", stderr=subprocess.STDOUT,
                 env={**os.environ, "TMPDIR": str(scratch)})
    steps = results.read(scratch / "steps.csv")
    last = steps[-1]
    return {"algorithm": name, "ranks": last["ranks"], "scale": factor,
            "length": last["length"], "k": last["k"],
            "milliseconds": f"{1000 * results.mean(steps, 'seconds'):.6g}",
            "words_sent_max": f"{results.most(steps, 'words_sent_max') * factor:.0f}",
            "messages_sent_max": last["messages_sent_max"],
            "words_are_a_floor": last["words_are_a_floor"],
            "global_selected": int(last["global_selected"]) * factor}


def run(given):
    """Simulates, prints the table and writes the files."""
    programs.check_schemes(given.algorithm)
    cases = []
    for ranks in given.ranks:
        for name in given.algorithm:
            base = name.split("(")[0].strip()
            factor = given.scale or SCALES.get(base, 128) * max(1, -(-ranks // 256))
            if factor > 1 and re.search(r"\bk\s*=", name):
                programs.fail(f"{name}: a k is not scaled with n, which is simulated at 1/{factor} of its size: name a density")
            check_memory(name, base, ranks, BERT // factor)
            cases.append((name, ranks, factor))
    if not os.access(given.platform, os.R_OK):
        programs.fail(f"cannot read the platform {given.platform}")
    programs.set_outputs(given, "simulated", "scaling")
    bench = programs.built(given, "simulated", "oktopk_bench", ["libsimgrid-dev"],
                           "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_COMPILER=smpicxx",
                           source=HERE) / "oktopk_bench"
    if given.deadline and float(given.deadline) > 0:
        programs.say("with --deadline each wait asks again and again, and the simulator lets every question take "
                     "time: the times below are up to several times too long")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, ranks, factor) in enumerate(cases, 1):
            programs.say(f"({number} of {len(cases)}) {name} on {ranks} ranks, 1/{factor} of the size")
            rows.append(simulate(given, pathlib.Path(scratch), bench, name, ranks, factor))
            programs.say(f"    {rows[-1]['milliseconds']} ms")
            results.write(given.csv, rows)  # what was measured before a failure is not lost
    print("\nSimulated time of communication per iteration in ms, "
          f"n = {BERT:,}, {programs.density_text(given)}:\n")
    print(tables.scaling(rows))
    if given.plot:
        pictures.draw(results.read(given.csv), given.plot, TITLE, NOTE.format(programs.density_text(given)))
    programs.wrote(given.csv, given.plot)
