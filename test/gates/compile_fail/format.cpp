// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

#include <cstdio>

HF_TXFUNC void print(char* to, const char* format, int* count) noexcept {
    std::snprintf(to, 40, format, 3);             // error: call of 'snprintf' with a format that is not a string literal
    std::snprintf(to, 40, "%p", (void*)to);       // error: conversion %p of a format prints an address
    std::snprintf(to, 40, "%d%n", 3, count);      // error: conversion %n of a format stores out of sight
}
