# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Any

from . import FrozenDict as FrozenDict, FrozenList as FrozenList, FrozenSet as FrozenSet

def can_change(value: Any) -> bool: ...
