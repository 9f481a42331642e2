# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program with a durable map, killed between two updates: what it had said was done is there afterwards."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Try(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"
    test_type = "explicit"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            program = os.path.join(self.cpp.build.bindir, "counted")
            pool = os.path.join(self.build_folder, "counted.hf")
            if os.path.exists(pool):
                os.unlink(pool)
            self.run(f"{program} {pool}; test $? -eq 137 || exit 1; {program} {pool} again", env="conanrun")
