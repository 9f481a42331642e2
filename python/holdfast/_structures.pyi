# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from . import (Map as Map, MapSnapshot as MapSnapshot, Queue as Queue, QueueSnapshot as QueueSnapshot, Set as Set,
               SetSnapshot as SetSnapshot, Stack as Stack, StackSnapshot as StackSnapshot, Vector as Vector,
               VectorSnapshot as VectorSnapshot)
