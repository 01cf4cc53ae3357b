# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""build_cuda.py FOLDER: what packaging/wheel.sh --cuda does with the tools of requirements.txt, and with nvcc and g++ of
this machine. So the wheel is for its glibc and newer ones."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from build import ROOT, give, kokkos
from scikit_build_core.build import build_wheel

GLIBC = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2]))
PLATFORM = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64"
# Beside PTX for compute capability 7.5: code for 8.x, and its PTX, of which the driver makes code for any newer GPU when it
# first runs.
CODE = "sm_80"


def nvcc():
    """Its path, as tests/cuda_emulator finds it."""
    return pathlib.Path(subprocess.run(["sh", "-c", ". tests/cuda_emulator/find_nvcc.sh && find_nvcc"], cwd=ROOT, check=True,
                                       capture_output=True, text=True).stdout.strip())


def device_kokkos(folder, compiler, toolkit, flags):
    """Its sources, and where it is installed: as in cmake/kokkos_cuda.sh, for real GPUs."""
    sources, installed = kokkos(folder), folder / "installed"
    correct = '. cmake/setup.sh && . cmake/kokkos_cuda.sh && correct_for_cuda_13 "$1" && correct_for_newer_gpus "$1"'
    subprocess.run(["sh", "-c", correct, "sh", sources], cwd=ROOT, check=True)
    options = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_STANDARD": "17", "CMAKE_CXX_EXTENSIONS": "OFF",
               "CMAKE_POSITION_INDEPENDENT_CODE": "ON", "CMAKE_CXX_COMPILER": compiler, "CMAKE_CXX_FLAGS": flags,
               "CMAKE_CXX_FLAGS_RELEASE": "-O2 -DNDEBUG -w", "CMAKE_INSTALL_LIBDIR": "lib", "CMAKE_INSTALL_PREFIX": installed,
               "Kokkos_ENABLE_SERIAL": "ON", "Kokkos_ENABLE_CUDA": "ON", "Kokkos_ENABLE_CUDA_LAMBDA": "ON",
               "Kokkos_ENABLE_LIBDL": "OFF", "Kokkos_ARCH_TURING75": "ON", "CUDA_CUDART": toolkit / "lib64/libcudart_static.a",
               "CUDA_cuda_driver_LIBRARY": toolkit / "lib64/stubs/libcuda.so", "CMAKE_DISABLE_FIND_PACKAGE_Git": "ON"}
    shutil.rmtree(folder / "kokkos-build", ignore_errors=True)
    subprocess.run(["cmake", "-S", sources, "-B", folder / "kokkos-build", "-G", "Ninja",
                    *(f"-D{name}={value}" for name, value in options.items())], check=True)
    subprocess.run(["cmake", "--build", folder / "kokkos-build", "--target", "install"], check=True)
    name_libraries(installed / "lib/cmake/Kokkos/KokkosConfig.cmake", toolkit)
    return sources, installed


def name_libraries(config, toolkit):
    """The libraries of CUDA in the package of Kokkos 3.4. It writes down what CMake has found, where newer releases have several
    folders in place of one, and parts that they do not name. nvcc.sh has the headers and the runtime, so the driver is left."""
    libraries = f"""
IF(NOT TARGET CUDA::cuda_driver)
  ADD_LIBRARY(CUDA::cudart INTERFACE IMPORTED)
  ADD_LIBRARY(CUDA::cuda_driver UNKNOWN IMPORTED)
  SET_TARGET_PROPERTIES(CUDA::cuda_driver PROPERTIES IMPORTED_LOCATION "{toolkit / 'lib64/stubs/libcuda.so'}")
ENDIF()
"""
    text, found = re.subn(r"\nIF\(NOT TARGET CUDA::cudart\)\n.*?\nENDIF\(\)\nIF\(NOT TARGET CUDA::cuda_driver\)\n.*?\nENDIF\(\)\n", libraries,
                          config.read_text(), flags=re.S)
    if found != 1:
        sys.exit(f"{config} names the libraries of CUDA in another way than Kokkos 3.4.01 does")
    config.write_text(text)


def build(folder):
    """The wheel, in FOLDER/made."""
    for name in "build", "made", "installed":
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "CMAKE_GENERATOR", "CMAKE_PREFIX_PATH"):
        os.environ.pop(name, None)
    toolkit, compiler = nvcc().parents[1], ROOT / "tests/cuda_emulator/nvcc.sh"
    os.environ.update(PATH=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", _PYTHON_HOST_PLATFORM=PLATFORM,
                      OKTOPK_NVCC=str(toolkit / "bin/nvcc"), OKTOPK_NVCC_CODE=CODE, OKTOPK_CUDART="static",
                      SOURCE_DATE_EPOCH="315532800")
    flags = ("-ffunction-sections -fdata-sections -fvisibility=hidden -fvisibility-inlines-hidden "
             + shlex.join([f"-ffile-prefix-map={ROOT}=oktopk", f"-ffile-prefix-map={folder}=build"]))
    sources, installed = device_kokkos(folder, compiler, toolkit, flags)
    options = {"CMAKE_CXX_COMPILER": compiler, "CMAKE_CXX_FLAGS": flags, "CMAKE_CXX_STANDARD": "20", "Kokkos_ROOT": installed,
               "CMAKE_SHARED_LINKER_FLAGS": "-Wl,--gc-sections -Wl,--as-needed -static-libstdc++ -static-libgcc -s",
               "CMAKE_SKIP_INSTALL_RPATH": "ON", "OKTOPK_KOKKOS_LICENSE": sources / "LICENSE"}
    settings = {f"cmake.define.{name}": str(each) for name, each in options.items()}
    settings.update({"build-dir": str(folder / "build"), "wheel.reproducible": "true", "install.strip": "false"})
    os.chdir(ROOT / "packaging/wheel/cuda")
    return folder / "made" / build_wheel(str(folder / "made"), settings)


def main():
    os.umask(0o022)
    give(build(pathlib.Path(sys.argv[1]).resolve()), GLIBC, PLATFORM)


if __name__ == "__main__":
    main()
