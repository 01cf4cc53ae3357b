# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Spack's recipe. Its source is the repository that it lies in, which must be a clone with the branch main."""

import os

import spack
from spack.package import *

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))


class Oktopk(CMakePackage):
    """Sparse allreduce for Kokkos and MPI, in header-only C++20: each rank selects its k largest gradient entries, and
    every rank gets the k largest sums of the selected entries."""

    homepage = "https://doi.org/10.1145/3503221.3508399"
    git = "file://" + ROOT
    test_requires_compiler = True

    license("Apache-2.0 WITH LLVM-exception")

    version("main", branch="main")

    variant("mpi", default=True, description="Depend on MPI, for oktopk/mpi.hpp")
    variant("nccl", default=False, description="Depend on NCCL, for oktopk/nccl.hpp")
    variant("torch", default=False, description="Depend on PyTorch, for oktopk/torch.hpp")
    variant("xxhash", default=False, description="Depend on xxHash, for oktopk/comm/checked.hpp")
    variant("zfp", default=False, description="Depend on zfp, for oktopk/codec/zfp.hpp")

    if spack.spack_version_info >= (0, 22):  # older releases know no languages
        depends_on("cxx", type="build")
    depends_on("cmake@3.16:", type="build")
    depends_on("kokkos@3.4:")
    depends_on("mpi@3:", when="+mpi")
    depends_on("nccl@2:", when="+nccl")
    depends_on("py-torch@1.13:+distributed", when="+torch")
    depends_on("xxhash@0.8:", when="+xxhash")
    depends_on("zfp@1:", when="+zfp")

    conflicts("%gcc@:10", msg="C++20 with concepts is needed")
    conflicts("%clang@:13", msg="C++20 with concepts is needed")

    # The execution spaces are those of Kokkos: choose them there, as in `oktopk ^kokkos+openmp`.

    def cmake_args(self):
        return [
            self.define_from_variant("OKTOPK_ENABLE_MPI", "mpi"),
            self.define_from_variant("OKTOPK_ENABLE_NCCL", "nccl"),
            self.define_from_variant("OKTOPK_ENABLE_TORCH", "torch"),
            self.define_from_variant("OKTOPK_ENABLE_XXHASH", "xxhash"),
            self.define_from_variant("OKTOPK_ENABLE_ZFP", "zfp"),
            self.define("OKTOPK_ENABLE_CATALOGUE", False),
            self.define("OKTOPK_ENABLE_TESTS", False),
        ]

    @run_after("install")
    def keep_smoke_test(self):
        """Keeps the small project that the test below builds."""
        cache_extra_test_sources(self, [os.path.join("tests", "install", "downstream")])

    def test_downstream_project(self):
        """A project finds the installed library, builds with it and gets the right result."""
        source = self.test_suite.current_test_cache_dir.tests.install.downstream
        cmake = Executable(self.spec["cmake"].prefix.bin.cmake)
        options = ["-S", source, "-B", "build", self.define("WITH_MPI", "+mpi" in self.spec)]
        prefixes = [self.prefix, self.spec["kokkos"].prefix]
        if "+mpi" in self.spec:
            prefixes.append(self.spec["mpi"].prefix)
            options.append(self.define("MPI_CXX_COMPILER", self.spec["mpi"].mpicxx))
        options.append(self.define("CMAKE_PREFIX_PATH", ";".join(prefixes)))
        cmake(*options)
        cmake("--build", "build")
        output = Executable(os.path.join("build", "alone"))(output=str.split, error=str.split)
        assert "the one largest entry came back" in output
