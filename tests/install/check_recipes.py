# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the recipes of packagers, and other data for tools, without these tools. Argument: the root of the project.

All must parse; Spack and vcpkg must offer the components that the package has; an option must be one of CMakeLists.txt;
and Conan must export what is installed.
"""

import ast
import fnmatch
import json
import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    yaml = None  # Debian: python3-yaml

FAULTS = []


def parsed(path, parse):
    """What `parse` makes of a file, or nothing where it does not parse."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (ValueError, SyntaxError, *([yaml.YAMLError] if yaml else [])) as error:
        FAULTS.append(f"{path}: {error}")
        return None


def calls_of(tree, name):
    """The first argument of each call of a function, where it is a text."""
    return {node.args[0].value for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
            and node.args and isinstance(node.args[0], ast.Constant)}


def texts_of(tree):
    """All constant texts."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def check(root):
    packaging = root / "packaging"
    trees = {path.relative_to(packaging).as_posix(): parsed(path, ast.parse) for path in packaging.rglob("*.py")}
    vcpkg = parsed(packaging / "vcpkg/oktopk/vcpkg.json", json.loads)
    parsed(root / "CMakePresets.json", json.loads)
    if yaml:
        for path in (root / "CITATION.cff", packaging / "spack/repo.yaml", *root.glob(".github/**/*.yml")):
            parsed(path, yaml.safe_load)
    if FAULTS:
        return

    optional = (root / "cmake/oktopk_optional.cmake").read_text(encoding="utf-8")
    components = {"mpi", *re.search(r"set\(oktopk_optional_components ([^)]*)\)", optional)[1].split()}
    offered = {"Spack": calls_of(trees["spack/packages/oktopk/package.py"], "variant"),
               "vcpkg": set(vcpkg.get("features", ()))}
    for name, there in offered.items():
        if there != components:
            FAULTS.append(f"{name} offers {sorted(there)}, and the components are {sorted(components)}")

    read_by = (root / "CMakeLists.txt", root / "src/CMakeLists.txt", *(root / "tests/cuda_emulator").glob("*.sh"))
    known = {name for path in read_by for name in re.findall(r"OKTOPK_[A-Z_]+", path.read_text(encoding="utf-8"))}
    for path in packaging.rglob("*"):
        if path.is_file():
            for option in re.findall(r"OKTOPK_[A-Z_]+", path.read_text(encoding="utf-8")):
                if option not in known:
                    FAULTS.append(f"{path}: there is no option {option}")

    patterns = texts_of(trees["conan/conanfile.py"])
    rules = (root / "cmake/install.cmake").read_text(encoding="utf-8")
    installed = re.findall(r"install\((?:FILES|DIRECTORY) ((?:[^$)]+ )+)DESTINATION", rules)
    for item in " ".join(installed).split():
        probe = f"{item}/any" if (root / item).is_dir() else item
        if not any(fnmatch.fnmatch(probe, pattern) for pattern in patterns):
            FAULTS.append(f"Conan does not export {item}, which is installed")
    if not installed:
        FAULTS.append("no file is installed by cmake/install.cmake")


check(pathlib.Path(sys.argv[1]))
sys.exit("\n".join(FAULTS) if FAULTS else 0)
