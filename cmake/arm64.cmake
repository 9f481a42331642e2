# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds for ARM64 on another Debian machine: preset "arm64", 'make arm64'. The compiler is the same clang 19. The plugin
# runs inside it, and instruments code for the processor that clang compiles for. Headers and libraries of the
# other processor are Debian's: packages.txt, [arm64]. Tests run under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Of no processor: one whose features this qemu has ("max" announces DC CVAP, and faults on it).
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu cortex-a72)
