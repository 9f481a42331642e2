# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Durable dict, set, list, stack and queue, in a file that survives kill -9.

    >>> import holdfast
    >>> prices = holdfast.Map("prices.hf")
    >>> prices["apple"] = "1.20"

Every call that changes something is failure-atomic: after a kill the file has the state before the
call or the state after it. Values are str, bytes, int, float, bool, None, dates and times, numpy
arrays, instances of registered classes, and tuples, lists, dicts and sets of them. Keys, and
elements of sets, are those of these that can be hashed.

Invariants:
(1) A path has at most one open pool in this process; structures opened by the same path share it.
(2) A call, or a transaction, makes one commit, however much it changes.
(3) Iterators, comparisons and printing see one version, while anything changes meanwhile.
(4) What is read of a structure is frozen. What is taken out of it is the caller's alone.
"""
import atexit
import contextlib
import contextvars
import os
import threading
import time
import typing
import warnings
import weakref

from . import _core
from ._encoding import register
from ._error import Error
from ._frozen import FrozenDict, FrozenList, FrozenSet

__all__ = ["Cache", "Element", "Error", "FrozenDict", "FrozenList", "FrozenSet", "Map", "MapSnapshot", "Object", "Pool", "Queue",
           "QueueSnapshot", "Set", "SetSnapshot", "SortedMap", "SortedMapSnapshot", "Stack", "StackSnapshot", "Vector",
           "VectorSnapshot", "deferrable", "instant", "open", "register"]
__version__ = "0.1.0"

Element = typing.Union[str, bytes]
_CREATION = {"if_missing": 0, "never": 1, "always_new": 2}
_MODES = {"process": 0, "pmem": 1, "power": 2}
_DEFAULTS = {"layout": "python/1", "durability": "process", "create_bytes": 0, "max_bytes": 0, "max_threads": 0, "salvage": False,
             "read_only": False, "shared": False}
_pools = weakref.WeakValueDictionary()  # real path: Pool (1)
_opening = threading.RLock()  # a signal handler may open one while its thread does
_transactions = contextvars.ContextVar("holdfast.transactions", default=())  # numbers of those that are open
_core.set_transactions_variable(_transactions)
_RETRY_S = 0.02  # while another process has a pool


def _chosen(name, choice, choices):
    if choice not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, not {choice!r}")
    return choice


class Pool(_core.Pool):
    """A file of durable structures. Open one with holdfast.open()."""

    def __init__(self, path, *, layout="python/1", durability="process", create="if_missing",
                 create_bytes=0, max_bytes=0, max_threads=0, salvage=False, read_only=False, shared=False, wait=0.0):
        mode = _MODES[_chosen("durability", durability, tuple(_MODES))]
        creation = _CREATION[_chosen("create", create, tuple(_CREATION))]
        if not isinstance(wait, (int, float)):
            raise TypeError(f"wait: expected a number of seconds, not {wait!r}")
        ends = time.monotonic() + wait
        while True:
            try:
                super().__init__(os.fsencode(path), layout, mode, creation, create_bytes, max_bytes,
                                 max_threads, salvage, read_only, shared)
                break
            except Error as error:
                if error.code != "in_use" or time.monotonic() >= ends:
                    raise
            time.sleep(_RETRY_S)
        self.path = os.fsdecode(path)
        self._options = {}
        self._read_only = read_only
        # In mode power a kill takes changes that are not durable yet, so there a change is durable
        # on return by default.
        self._when_durable = "on_return" if durability == "power" else "by_next_section"
        self._arrivals = {}  # of queues, by name
        self._edits = threading.RLock()  # of edit(), which wait for each other
        self._entered_count = 0
        self._transaction = None
        self._file = _file_at(path)
        _pools[os.path.realpath(path)] = self

    def close(self):
        """Closes the file cleanly; nothing in it can be used any more.

        Raises Error, when it is closed, if there was no room for an object's deferred calls. Raises BufferError, and closes nothing, while
        a memoryview of a stored value is in use.
        """
        failed = None if self.closed else _object._settle(self)
        super().close()
        for arrivals in list(self._arrivals.values()):
            arrivals.wake_all()
        if failed is not None:
            raise failed

    def settle(self):
        """Makes all work that has returned durable: changes of structures, and deferred calls of
        objects, on any thread."""
        for (of, _), each in list(_object._objects.items()):
            if of is self and not each._shown:
                each.sync()
        super().settle()

    def copy_to(self, path):
        """Copies all that is committed at one moment to a new file, while other threads work on.

        Returns the file's bytes and the milliseconds for which every thread stood still: no change waits longer.
        The copy is on the disk, and opens as any pool. Raises Error: exists, pool_full (the disk), permission (the
        system lets no process be stopped), closed (of a parent's pool, too), mode_unavailable (durability "power").
        """
        return super().copy_to(os.fsencode(path))

    def transaction(self):
        """with pool.transaction(): all changes of the pool's structures in the block are made together at its end, or, if it
        raises, none.

        The block sees its own changes; others see them when they are committed. Changes by others wait for the end of the
        block. One within another is a part of it.

        Raises Error at the end, and nothing is changed: pool_full, limit_reached (more than 50 structures).
        """
        return _Transaction(self)

    def _refuse_in_transaction(self):
        if self._in_transaction:
            raise RuntimeError("objects take no part in transactions: call them before or behind it")

    def __enter__(self):
        with _opening:
            self._entered_count += 1
        return self

    def __exit__(self, *_):
        """Closes the pool at the end of the last 'with' that has it."""
        with _opening:
            self._entered_count -= 1
        if self._entered_count <= 0:
            self.close()

    def __repr__(self):
        return f"<holdfast.Pool {self.path!r}{', closed' if self.closed else ''}>"


class _Transaction:
    """A transaction of a pool, or a part of the one around it."""

    def __init__(self, pool):
        self._pool, self._made, self._outer, self._failed = pool, None, None, False

    def __enter__(self):
        if self._made is not None or self._outer is not None:
            raise RuntimeError("a transaction is used once: call pool.transaction() again")
        if self._pool._in_transaction:
            self._outer = self._pool._transaction
            return self._pool
        self._made = _core.Transaction(self._pool)  # waits for its turn
        self._before = _transactions.set((*_transactions.get(), self._made.number))
        self._pool._transaction = self
        return self._pool

    def __exit__(self, kind, *_):
        if self._outer is not None:
            self._outer._failed |= kind is not None
            return
        try:
            if kind is None and not self._failed:
                self._made.commit()
        finally:
            self._made.close()
            self._pool._transaction = None
            with contextlib.suppress(ValueError):  # a generator that was given up ends in another context
                _transactions.reset(self._before)
            for arrivals in list(self._pool._arrivals.values()):
                arrivals.wake_all()
        if kind is None and self._failed:
            raise RuntimeError("a transaction within this one raised, and so nothing is changed: let its exception leave this one, too")


def open(path, **options):
    """Opens, or creates, the pool at path. If it is open in this process, returns that one.

    layout       the name of what is in it; the default is what Map("file") and its siblings take
    durability   "process" survives the death of the process; "pmem" power loss, too, on persistent
                 memory with a DAX mapping; "power" power loss on any disk, with a log beside the pool
    create       "if_missing", "never" or "always_new"
    create_bytes, max_bytes   size of a new pool, and limit of its growth (neither: 1 MiB, 4 GiB; no
                 max_bytes: 64 times create_bytes)
    salvage      open a pool that was open when the machine, not the process, went down
    read_only    look at a pool; nothing is written to its file, and changing it raises Error
    shared       others may read it beside this process, if they open it with read_only and shared;
                 they read the current state, and their snapshots do not change
    wait         seconds to wait for another process that has it open; the default is 0

    Raises ValueError if it is open with other options. Raises Error: in_use if another process has it open; missing_engine if a crash left
    failure-atomic sections of a C or C++ program in it, which only that program, or the command
    `holdfast`, can end.
    """
    return _pool_of(path, options)


def _file_at(path):
    """The identity of the file at this path; None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _pool_of(where, options):
    """The pool itself, or the one at that path (1)."""
    if isinstance(where, Pool):
        if options:
            raise TypeError(f"the pool is open: {', '.join(options)} cannot be given any more")
        return where
    with _opening:
        pool = _pools.get(os.path.realpath(where))
        if pool is not None and not pool.closed and pool._file != _file_at(where):
            warnings.warn(f"{pool.path}: the pool that is open has lost its name: its file was removed or renamed; "
                          "what has the name now is opened", RuntimeWarning, stacklevel=3)
            pool = None
        wanted = {name: value for name, value in options.items() if name != "wait"}
        if pool is None or pool.closed or wanted.get("create") == "always_new":
            pool = Pool(where, **options)
            pool._options = wanted
        elif any(pool._options.get(name, _DEFAULTS.get(name)) != value for name, value in wanted.items()):
            raise ValueError(f"{pool.path} is open already, with other options: expected {pool._options or 'none'}, found {wanted}")
        return pool


def _close_all():
    failed = None
    for pool in list(_pools.values()):
        try:
            pool.close()
        except BufferError:  # a view lives on; the next open finds the pool as a killed process leaves it
            pool.settle()
        except Error as error:  # the others are closed all the same
            failed = failed or error
    if failed is not None:
        raise failed


atexit.register(_close_all)


def _forked():
    """A child has none of the threads that may have held it."""
    global _opening
    _opening = threading.RLock()


os.register_at_fork(after_in_child=_forked)


from ._structures import (Map, MapSnapshot, Queue, QueueSnapshot, Set, SetSnapshot, Stack, StackSnapshot, Vector,  # noqa: E402
                          VectorSnapshot)
from ._sorted import SortedMap, SortedMapSnapshot  # noqa: E402
from ._cache import Cache  # noqa: E402
from . import _object  # noqa: E402  it is made of a Map
from ._object import Object, deferrable, instant  # noqa: E402

for _each in (Map, MapSnapshot, Queue, QueueSnapshot, Set, SetSnapshot, Stack, StackSnapshot, Vector, VectorSnapshot, SortedMap,
              SortedMapSnapshot, Cache, Object, deferrable, instant, register):
    _each.__module__ = "holdfast"
