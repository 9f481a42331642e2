// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/holdfast.hpp> // error in a header: Holdfast needs C++20
