// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <section/section.hpp> // error: file not found
