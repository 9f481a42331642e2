# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
class Error(Exception):
    code: str
    message: str
    def __init__(self, code: str, message: str) -> None: ...
