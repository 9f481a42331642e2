// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
void add_one(long* p) noexcept { *p += 1; }
