# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Any, Generic, TypeVar

from ._object import Object

__all__ = ["Replica"]

_T = TypeVar("_T", bound=Object)

class Replica(Generic[_T]):
    object: _T
    stream: str
    lease: float
    def __init__(self, object_: _T, client: Any, stream: str, *, lease: float = ...) -> None: ...
    @staticmethod
    def leave(object_: Object) -> None: ...
    @property
    def leads(self) -> bool: ...
    @property
    def call(self) -> _T: ...
    def read(self) -> _T: ...
    def step(self, wait: float) -> bool: ...
