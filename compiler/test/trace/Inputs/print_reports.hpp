// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

void watch(void* begin, unsigned long bytes);
