# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from . import SortedMap as SortedMap, SortedMapSnapshot as SortedMapSnapshot
