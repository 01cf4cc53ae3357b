# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conan's recipe, for the tree that it lies in. Kokkos, MPI and zfp are those that CMake finds on the system."""

import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.0"


class Oktopk(ConanFile):
    """Headers and CMake files; oktopkConfig.cmake itself finds Kokkos where it is used."""

    name = "oktopk"
    version = "0.2.0"
    description = (
        "Sparse allreduce for Kokkos and MPI: each rank selects its k largest gradient entries, and every rank gets the k "
        "largest sums of the selected entries")
    license = "Apache-2.0 WITH LLVM-exception"
    topics = ("allreduce", "gradient-sparsification", "kokkos", "mpi", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def layout(self):
        cmake_layout(self)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, os.pardir, os.pardir)
        for pattern in ("CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "cmake/*", "docs/*",
                        "include/*", "src/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def validate(self):
        check_min_cppstd(self, 20)

    def system_requirements(self):
        Apt(self).check(["libtrilinos-kokkos-dev"])

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["OKTOPK_INSTALL"] = True
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # The package's own CMake files, not ones that Conan makes up.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "oktopk")]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
