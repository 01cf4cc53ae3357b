# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Shows that the emulator finds faults: puts one after the other into a copy of the library's headers and runs a test
with it, which must fail in the modes that are named and in no other one, and without a fault pass in all of them.

    python3 tests/cuda_emulator/check_faults.py [--build build] [FAULT...]

It wants what `sh tests/run.sh --backend cuda` has built there, and takes some minutes."""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODES = {"eager": {}, "held back": {"LAZY": "1"}, "shuffled": {"SEED": "3"}, "uninitialised": {"INITCHECK": "1"}}
TEST = "exchange/test_split_and_reduce.cpp"


@dataclasses.dataclass
class Fault:
    """In `header` (below include/oktopk) `old` becomes `new`. `said` has the modes that find it, and what the emulator says
    there; where it says nothing the test sees a wrong number."""

    name: str
    header: str
    old: str
    new: str
    said: dict

    def found_in(self, mode, done):
        words = self.said[mode]
        sign = f"CUDA emulator: .*{re.escape(words)}" if words else r"FAILED:\s+CHECK\("  # and no other way to end
        return done.returncode != 0 and re.search(sign, done.stdout + done.stderr) is not None


def in_all_modes(said):
    return dict.fromkeys(MODES, said)


OUT_OF_BOUNDS = "is out of bounds of every allocation"

# An instance on a stream that waits for no other one. It is never destroyed: Kokkos would free its scratch memory, and
# that waits for everything.
OTHER_STREAM = """[]() -> E const& {
      static E const& other = *new E([] {
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        return stream;
      }());
      return other;
    }()"""

FAULTS = [
    Fault("fence", "core/workspace.hpp", "    detail::fence(exec, label);\n", "    (void)label;\n", {"held back": ""}),
    Fault("atomic", "core/kokkos_ext/execution.hpp", "Kokkos::atomic_fetch_or(word, bits);", "*word |= bits;",
          in_all_modes("")),
    Fault("bound", "sparse/region_sum.hpp", '"oktopk::region_sum::extract", exec, words(),',
          '"oktopk::region_sum::extract", exec, words() + 1000,', in_all_modes(OUT_OF_BOUNDS)),
    Fault("uncleared memory", "sparse/region_sum.hpp", '"oktopk::region_sum::touched", true', '"oktopk::region_sum::touched"',
          {**in_all_modes(OUT_OF_BOUNDS), "uninitialised": "which nobody wrote"}),
    Fault("host pointer", "sparse/region_sum.hpp", "items{sums_.data(), touched_.data(),",
          "items{new Value[1 << 20](), touched_.data(),", in_all_modes("is it the host's?")),
    Fault("stream order", "sparse/region_sum.hpp", "detail::index_range<E>(exec, 0, entries.size())",
          f"detail::index_range<E>({OTHER_STREAM}, 0, entries.size())", {"held back": ""}),
]


class Bench:
    def __init__(self, build):
        self.work = build / "cuda-faults"
        self.kokkos = build / "kokkos-cuda" / "installed"
        self.environment = {**os.environ, "OKTOPK_CUDART": str(build / "cuda-emulator")}
        for needed in [self.kokkos / "lib" / "libkokkoscore.a", build / "cuda-emulator" / "libcudart.so"]:
            if not needed.exists():
                sys.exit(f"{needed} is missing: run sh tests/run.sh --backend cuda before")
        self.work.mkdir(exist_ok=True)
        self.compile(ROOT / "tests" / "main.cpp", ROOT / "include", "main.o")

    def compiler(self, *arguments):
        done = subprocess.run(["sh", ROOT / "tests" / "cuda_emulator" / "nvcc.sh", *arguments], capture_output=True,
                              text=True, env=self.environment, check=False)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)

    def compile(self, source, headers, name):
        self.compiler("-std=c++20", "-O1", "-w", "-expt-extended-lambda", f"-I{headers}", f"-I{ROOT / 'tests'}", "-isystem",
                      self.kokkos / "include", "-c", source, "-o", self.work / name)

    def program(self, fault):
        """The test with this fault in the headers, or with none."""
        headers = self.work / "include"
        shutil.rmtree(headers, ignore_errors=True)
        shutil.copytree(ROOT / "include", headers)
        if fault:
            header = headers / "oktopk" / fault.header
            text = header.read_text(encoding="utf-8")
            if fault.old not in text:
                sys.exit(f"{fault.header} has no '{fault.old}' any more: name another place for the fault {fault.name}")
            header.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        self.compile(ROOT / "tests" / TEST, headers, "test.o")
        self.compiler(self.work / "main.o", self.work / "test.o", self.kokkos / "lib" / "libkokkoscore.a", "-lcuda", "-ldl",
                      "-o", self.work / "test")
        return self.work / "test"

    def run(self, program, mode):
        settings = {f"OKTOPK_CUDA_EMULATOR_{name}": value for name, value in MODES[mode].items()}
        return subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=600, check=False,
                              env={**self.environment, **settings})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("fault", nargs="*", choices=[[], *(fault.name for fault in FAULTS)])
    options = parser.parse_args()
    bench = Bench(options.build.resolve())
    missed = 0
    for fault in [None, *FAULTS]:
        if fault and options.fault and fault.name not in options.fault:
            continue
        program = bench.program(fault)
        row = []
        for mode in MODES:
            done = bench.run(program, mode)
            row.append(f"{mode}: {'passes' if done.returncode == 0 else 'fails'}")
            wanted = fault is not None and mode in fault.said
            if not (fault.found_in(mode, done) if wanted else done.returncode == 0):
                missed += 1
                row[-1] += " (WRONG)"
                (bench.work / "output").write_text(done.stdout + done.stderr, encoding="utf-8")
        print(f"{fault.name if fault else 'no fault'}: {', '.join(row)}", flush=True)
    sys.exit(f"{missed} runs were not as they should be" if missed else 0)


if __name__ == "__main__":
    main()
