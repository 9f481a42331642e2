// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <open/pool_impl.hpp> // error: file not found
