# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""build.py FOLDER: what packaging/wheel.sh does with the tools of requirements.txt."""

import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import urllib.request

import ziglang
from scikit_build_core.build import build_wheel

ROOT = pathlib.Path(__file__).resolve().parents[2]
GLIBC = (2, 28)  # AlmaLinux 8, Debian 10, Ubuntu 20.04
PLATFORM = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64"
# Kokkos 3.4.01, the release of Debian 12 and 13: in three megabytes of PyPI what their source package, trilinos, has in 166.
KOKKOS = ("https://files.pythonhosted.org/packages/1d/2e/e3e6035ba1b7358033ad15e07ed0d49ba1b1298fdfa9ea8814a8ccc39df8/"
          "pykokkos-base-0.0.7.tar.gz", "6339daced1e81a2748f381847d8717cd77d824407da3c263b9491b5630c642b0",
          "pykokkos-base-0.0.7/external/kokkos")


def kokkos(folder):
    """The folder of its sources, which come from there unless they have before."""
    address, sha256, inside = KOKKOS
    archive = folder / address.rpartition("/")[2]
    if not archive.exists():
        with urllib.request.urlopen(address, timeout=60) as found:
            archive.write_bytes(found.read())
    if (of := hashlib.sha256(archive.read_bytes()).hexdigest()) != sha256:
        archive.unlink()
        sys.exit(f"Failed to download {address}: its SHA-256 is {of}, expected {sha256}")
    shutil.rmtree(folder / "kokkos", ignore_errors=True)
    with tarfile.open(archive) as sources:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # as from 3.11.4 on
        sources.extractall(folder / "kokkos", [each for each in sources if each.name.startswith(inside)], **safely)
    return folder / "kokkos" / inside


def compilers(folder):
    """Commands for CMake, which wants one without arguments; zig has all in one program. For the oldest processor."""
    folder.mkdir(parents=True, exist_ok=True)
    zig = pathlib.Path(ziglang.__file__).with_name("zig")
    target = ["-target", f"x86_64-linux-gnu.{GLIBC[0]}.{GLIBC[1]}", "-mcpu=baseline"]
    for name, arguments in {"cc": target, "c++": target, "ar": [], "ranlib": []}.items():
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec {shlex.join([str(zig), name, *arguments])} "$@"\n', "utf-8")
        command.chmod(0o755)


def build(folder):
    """The wheel, in FOLDER/made."""
    for name in "build", "made":
        shutil.rmtree(folder / name, ignore_errors=True)
    compilers(folder / "bin")
    # Nothing of the caller's counts but CMAKE_ARGS.
    for name in ("CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "CMAKE_GENERATOR", "CMAKE_PREFIX_PATH"):
        os.environ.pop(name, None)
    cache = str(folder / "zig")
    os.environ.update(PATH=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", ZIG_GLOBAL_CACHE_DIR=cache,
                      ZIG_LOCAL_CACHE_DIR=cache, _PYTHON_HOST_PLATFORM=PLATFORM,
                      SOURCE_DATE_EPOCH="315532800")  # 1980-01-01, the first day that an archive can name
    # Kokkos names its files in what it throws. The last map counts where one folder is in the other.
    flags = ("-g0 -ffunction-sections -fdata-sections -fvisibility=hidden -fvisibility-inlines-hidden "
             + shlex.join([f"-ffile-prefix-map={ROOT}=oktopk", f"-ffile-prefix-map={folder}=build"]))
    bin_folder = folder / "bin"
    options = {
        "CMAKE_C_COMPILER": bin_folder / "cc", "CMAKE_CXX_COMPILER": bin_folder / "c++", "CMAKE_AR": bin_folder / "ar",
        "CMAKE_RANLIB": bin_folder / "ranlib", "CMAKE_C_FLAGS": flags, "CMAKE_CXX_FLAGS": flags,
        "CMAKE_SHARED_LINKER_FLAGS": "-Wl,--gc-sections -s",
        "CMAKE_EXE_LINKER_FLAGS": "-s",  # of CMake's own checks: zig builds its libc++ anew for another kind of link
        "OKTOPK_FETCH_KOKKOS": "ALWAYS",
        "FETCHCONTENT_SOURCE_DIR_KOKKOS": kokkos(folder), "CMAKE_CXX_STANDARD": "20",
        "Kokkos_ENABLE_LIBDL": "OFF",  # loads tools for measurements, and would be that of this machine
        "CMAKE_DISABLE_FIND_PACKAGE_Git": "ON"}  # Kokkos would write down the commit of a repository around it
    settings = {f"cmake.define.{name}": str(each) for name, each in options.items()}
    settings.update({"build-dir": str(folder / "build"), "wheel.reproducible": "true", "install.strip": "false"})
    os.chdir(ROOT)
    return folder / "made" / build_wheel(str(folder / "made"), settings)


def verdict(wheel):
    """The oldest platform that has all libraries and symbols which the wheel needs, as auditwheel has it."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", wheel]
    said = subprocess.run(command, check=True, capture_output=True)
    return json.loads(said.stdout)["overall_tag"]


def give(wheel, glibc, platform):
    """Copies a wheel to dist/, if it is for so old a glibc as it says."""
    found = verdict(wheel)
    asks_for = re.match(r"manylinux_(\d+)_(\d+)_x86_64$", found)
    if not asks_for or tuple(map(int, asks_for.groups())) > glibc:  # the tag is a promise
        sys.exit(f"{wheel} is for {found}, and not for {platform}")
    (ROOT / "dist").mkdir(exist_ok=True)
    shutil.copy(wheel, ROOT / "dist")
    print(f"dist/{wheel.name}: {wheel.stat().st_size} bytes, {found} by auditwheel, "
          f"sha256 {hashlib.sha256(wheel.read_bytes()).hexdigest()}")


def main():
    os.umask(0o022)
    give(build(pathlib.Path(sys.argv[1]).resolve()), GLIBC, PLATFORM)


if __name__ == "__main__":
    main()
