# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""oktopk_torch as users get it: the wheel, in seconds and without a compiler, and what pip builds of the source.

OKTOPK_WHEEL names the wheel; else it is that of dist/, built by packaging/wheel.sh where there is none or an older one."""

import os
import pathlib
import re
import shutil
import sys
import tarfile
import time
import zipfile

import pytest
from conftest import ROOT, SECONDS, VERSION, run, succeed

BUILD_SECONDS = 15 * SECONDS  # some ten minutes on two cores
PACKAGE = {f"oktopk_torch/{path.name}" for path in (ROOT / "python" / "oktopk_torch").iterdir() if path.is_file()} | {
    "oktopk_torch/liboktopk_engine.so.1"}
OF_GLIBC = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}

USES = """
import json, oktopk_torch
assert {"ok_topk", "dense"} <= set(oktopk_torch.algorithms())
print(json.dumps([oktopk_torch.__version__, oktopk_torch.build()]))
"""


def built(arguments=()):
    """Runs packaging/wheel.sh. Skips where the sources cannot be fetched."""
    done = run("sh", ROOT / "packaging" / "wheel.sh", *arguments, timeout=BUILD_SECONDS, cwd=ROOT)
    if re.search("[Cc]ould not resolve host|Build step for kokkos failed|No matching distribution", done.stderr):
        pytest.skip(f"packaging/wheel.sh cannot fetch its sources or tools: {done.stderr[-300:]}")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    print(done.stdout.splitlines()[-1])


def in_dist():
    """The wheel there, unless something that goes into it is newer."""
    folders = [ROOT / name for name in ("cmake", "include", "packaging/wheel", "python", "src")]
    kinds = {".cmake", ".cpp", ".h", ".hpp", ".map", ".py", ".pyi", ".txt"}
    newest = max(path.stat().st_mtime for folder in folders for path in folder.rglob("*") if path.suffix in kinds)
    found = [path for path in (ROOT / "dist").glob(f"oktopk_torch-{VERSION}-py3-none-manylinux_*_x86_64.whl")
             if path.stat().st_mtime > newest]
    return found[0] if found else None


@pytest.fixture(scope="session", name="wheel")
def that_wheel():
    """The file."""
    given = os.environ.get("OKTOPK_WHEEL")
    if not given and in_dist() is None:
        built()
    wheel = pathlib.Path(given) if given else in_dist()
    print(f"{wheel.name}: {wheel.stat().st_size} bytes")
    return wheel


@pytest.fixture(name="engine")
def that_engine(wheel, tmp_path):
    """The library of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.extract("oktopk_torch/liboktopk_engine.so.1", tmp_path)


def venv(folder):
    """A new one that sees the torch of this Python, which may be of a venv itself; its Python."""
    succeed(sys.executable, "-m", "venv", folder)
    packages = succeed(sys.executable, "-c", "import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])")
    site, = folder.glob("lib/python*/site-packages")
    (site / "torch_of_the_tests.pth").write_text(packages, "utf-8")
    return folder / "bin" / "python3"


def pip(python, *arguments, **options):
    succeed(python, "-m", "pip", "--disable-pip-version-check", *arguments, **options)


def works(python, folder):
    """It imports, says what it is, and trains on two ranks."""
    alone = {"PATH": str(python.parent), "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    said = succeed(python, "-c", USES, cwd=folder, env=alone)
    assert said.startswith(f'["{VERSION}", ') and str(python.parents[1]) in said
    said = succeed(python, ROOT / "examples" / "torch" / "ddp_hook.py", "--steps", 100, cwd=folder, env=alone)
    losses = [float(each) for each in re.findall(r"loss ([0-9.]+)", said)]
    assert len(losses) == 3 and losses[-1] < 0.8 * losses[0], said


def test_installs_in_seconds_without_a_compiler(wheel, tmp_path):
    os.environ.pop("PYTHONPATH", None)
    python = venv(tmp_path / "venv")
    alone = {"PATH": str(python.parent), "HOME": str(tmp_path), "PIP_NO_INDEX": "1"}
    began = time.monotonic()
    pip(python, "install", wheel, env=alone)  # with what it depends on, which is nothing
    took = time.monotonic() - began
    print(f"installed in {took:.1f} s")
    assert took < 10
    works(python, tmp_path)
    pip(python, "uninstall", "-y", "oktopk-torch", env=alone)
    assert run(python, "-c", "import oktopk_torch", cwd=tmp_path).returncode != 0
    assert not list((tmp_path / "venv").glob("lib/python*/site-packages/oktopk*"))


def test_has_what_it_needs_and_no_more(wheel):
    about = f"oktopk_torch-{VERSION}.dist-info"
    assert wheel.name == f"oktopk_torch-{VERSION}-py3-none-manylinux_2_28_x86_64.whl"
    assert wheel.stat().st_size < 5e6
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert names == PACKAGE | {f"{about}/{name}" for name in (
            "METADATA", "RECORD", "WHEEL", "licenses/LICENSE", "licenses/Kokkos/LICENSE")}
        metadata = archive.read(f"{about}/METADATA").decode()
        assert "Requires-Dist" not in metadata and "\nRequires-Python: >=3.8\n" in metadata
        for name in PACKAGE - {"oktopk_torch/liboktopk_engine.so.1"}:
            assert archive.read(name) == (ROOT / "python" / name).read_bytes(), f"{name} is not that of this folder"


def test_shows_the_functions_of_its_header_alone(engine):
    header = (ROOT / "include" / "oktopk" / "engine.h").read_text("utf-8")
    functions = set(re.findall(r"^OKTOPK_ENGINE_API [^;(]*\b(oktopk_engine_\w+)\(", header, re.M))
    shown = [line.split()[-1] for line in succeed("nm", "-D", "--defined-only", engine).splitlines()]
    assert len(functions) > 20 and set(shown) == functions and len(shown) == len(functions)


def test_needs_glibc_alone_and_an_old_one(engine):
    needs = succeed("readelf", "-dW", engine)
    assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", needs)) <= OF_GLIBC and "PATH)" not in needs, needs
    versions = re.findall(r"@(\w+?)_([0-9.]+)$", succeed("nm", "-D", "--undefined-only", engine), re.M)
    assert versions and {name for name, _ in versions} == {"GLIBC"}
    assert max(tuple(map(int, number.split("."))) for _, number in versions) <= (2, 28), versions
    named = pathlib.Path(engine).read_bytes()
    assert str(ROOT).encode() not in named and b"/wheel/" not in named  # folders of the build


def test_two_builds_have_the_same_bytes(wheel, tmp_path):
    """The second one elsewhere."""
    if os.environ.get("OKTOPK_WHEEL"):
        pytest.skip("OKTOPK_WHEEL may be of another machine, with other sources")
    first = wheel.read_bytes()
    try:
        built(["--build", tmp_path / "a folder"])
        assert wheel.read_bytes() == first
    finally:
        shutil.rmtree(tmp_path / "a folder", ignore_errors=True)  # half a gigabyte


def test_pip_builds_the_source(tmp_path, monkeypatch):
    """As pip does by itself: apart from all packages, with scikit-build-core of PyPI. It builds the archive of the sources,
    which so has all that a build needs; without optimizing, which would take three times as long."""
    monkeypatch.setenv("CMAKE_ARGS", "-DCMAKE_CXX_FLAGS_RELEASE=-O0")
    python = venv(tmp_path / "venv")
    backend = run(python, "-m", "pip", "install", "-q", "scikit-build-core", timeout=SECONDS)
    if backend.returncode != 0:
        pytest.skip(f"pip cannot fetch scikit-build-core: {backend.stderr[-300:]}")
    succeed(python, "-c", f"import scikit_build_core.build as b; b.build_sdist({str(tmp_path)!r})", cwd=ROOT)
    sources = tmp_path / f"oktopk_torch-{VERSION}.tar.gz"
    with tarfile.open(sources) as archive:
        folders = {name.split("/")[1] for name in archive.getnames()}
    assert folders == {"CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "cmake", "include", "packaging",
                       "pyproject.toml", "python", "src"}
    began = time.monotonic()
    pip(python, "wheel", "--no-deps", "-w", tmp_path / "made", sources, timeout=BUILD_SECONDS)
    wheel, = (tmp_path / "made").glob(f"oktopk_torch-{VERSION}-py3-none-*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size} bytes, built in {time.monotonic() - began:.0f} s")
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if ".dist-info/" not in name} == PACKAGE
    pip(python, "install", "--no-index", wheel)
    works(python, tmp_path)
