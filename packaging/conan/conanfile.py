# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holdfast's libraries for Conan 2: persistent objects and durable containers, with any C++20 compiler.

    conan create packaging/conan                                       {fmt} and xxHash from a remote
    conan create packaging/conan -o 'holdfast/*:system_libraries=True' … from Debian's packages

The compiler plugin is no part of it: it fits one compiler, clang 19, and comes by make install or the packages.
"""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.0"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Holdfast(ConanFile):
    name = "holdfast"
    license = "Apache-2.0 WITH LLVM-exception"
    description = "Ordinary C++ objects in a file that survives kill -9 and, where the mode allows, power loss"
    topics = ("persistence", "crash-consistency", "persistent-memory", "data-structures")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"system_libraries": [True, False]}
    default_options = {"system_libraries": False}
    generators = "CMakeDeps"

    def set_version(self):
        self.version = re.search(r"project\(holdfast VERSION (\S+)", load(self, os.path.join(ROOT, "CMakeLists.txt")))[1]

    def export_sources(self):
        for part in ("CMakeLists.txt", "LICENSE", "README.md", "cmake/*", "include/*", "src/*", "tools/gdb/*"):
            copy(self, part, ROOT, self.export_sources_folder)

    def requirements(self):
        if not self.options.system_libraries:
            self.requires("fmt/[>=9.1 <12]", transitive_headers=False)
            self.requires("xxhash/[>=0.8 <1]", visible=False)

    def system_requirements(self):
        if self.options.system_libraries:
            Apt(self).install(["libfmt-dev", "libxxhash-dev"])

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("COMPILER", "TESTS", "PROGRAMS", "BENCHMARKS"):
            toolchain.cache_variables[f"HOLDFAST_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):  # find_package(holdfast) finds the package's own files
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "holdfast")]
