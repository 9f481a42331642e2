# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Prints the version field of the descriptor of 'section' in the IR on standard input.
import re
import sys

print(re.search(r"@_Z7section\w+\.hf_\w+ = internal constant \{[^}]*\} "
                r"\{ i32 \d+, i32 \d+, i64 -?\d+, i64 (-?\d+),", sys.stdin.read()).group(1))
