# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Any

__all__ = ["decode", "encode"]

def encode(value: Any, hashable: bool = ...) -> bytes: ...
def decode(data: bytes, /) -> Any: ...

from . import register as register
