# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exception, where the extension module finds it."""


class Error(Exception):
    """An operating error: missing, full, in use, closed …

    code is its short stable name ("wrong_layout"), message the sentence with what was expected and
    what was found.
    """

    def __init__(self, code, message):
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self):
        return self.message or self.code


Error.__module__ = "holdfast"
