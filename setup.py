# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pyproject.toml cannot say: the extension module is built by CMake, with the torch of this Python."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).parent.resolve()


class CMakeBuild(build_ext):
    """Builds oktopk_torch._native alone, without MPI."""

    def build_extension(self, ext):
        try:
            import torch  # pylint: disable=import-outside-toplevel  # there is none in an isolated build
        except ImportError:
            sys.exit("oktopk_torch is built with the torch that is installed: add --no-build-isolation")
        folder = pathlib.Path(self.build_temp).resolve()
        options = {"OKTOPK_ENABLE_PYTHON": "ON", "OKTOPK_PYTHON": sys.executable, "OKTOPK_ENABLE_MPI": "OFF",
                   "OKTOPK_INSTALL": "OFF", "CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_FLAGS_RELEASE": "-O2 -DNDEBUG",
                   # Wheels of torch bring headers and libraries along; some have the strings of C++98.
                   "CMAKE_PREFIX_PATH": pathlib.Path(torch.__file__).parent,
                   "CMAKE_CXX_FLAGS": f"{os.environ.get('CXXFLAGS', '')} "
                                      f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}".strip()}
        (folder / "CMakeCache.txt").unlink(missing_ok=True)  # another torch may be installed than the last time
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        given = shlex.split(os.environ.get("CMAKE_ARGS", ""))  # last, so that they count
        subprocess.run(["cmake", "-S", ROOT, "-B", folder, *generator, *(f"-D{key}={value}" for key, value in options.items()),
                        *given], check=True)
        # Without a number, --parallel goes before the variable.
        parallel = [] if "CMAKE_BUILD_PARALLEL_LEVEL" in os.environ else ["--parallel"]
        subprocess.run(["cmake", "--build", folder, "--target", "oktopk_torch_native", *parallel], check=True)
        made = pathlib.Path(self.get_ext_fullpath(ext.name))
        made.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(next((folder / "python" / "oktopk_torch").glob("_native*")), made)


version = re.search(r"^project\(oktopk VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text("utf-8"), re.M)[1]
setup(version=version, packages=["oktopk_torch"], package_dir={"": "python"},
      package_data={"oktopk_torch": ["py.typed", "*.pyi"]}, ext_modules=[Extension("oktopk_torch._native", [])],
      cmdclass={"build_ext": CMakeBuild})
