# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects whose calls are logged: docs/guide/python-objects.md, docs/format/python-values.md.

SIMPO (TACO 15(1), 3.1) for Python: a class says which of its methods change it. Their calls are
logged, in groups that one commit makes durable. From time to time the object's attributes are
stored. An open takes these, and makes the later calls again.

Invariants:
(1) Memory has exactly the state that recovery would make of the log. So a logged method gets copies
    of its arguments as they are decoded, answers with a copy, and its exception is part of the
    call. Nothing else sets an attribute. When the attributes are stored, the object goes on with
    their decoded form.
(2) One commit makes a group durable, or the attributes and the number of the first group that they
    do not include. The place of a group is used again only when no failure needs its contents.
(3) When a commit fails, memory is ahead of the file: the object cannot be used until it is opened
    again. The same holds when an interrupt, which may come between any two steps, leaves a call
    half made or attributes half stored: such code marks the object as broken before, and as whole
    behind. The mark also refuses a signal handler or destructor that runs there, in the thread that
    has the lock, and would use the object.
(4) In a pool that is open read-only, memory has the state that recovery would make of one snapshot
    of the file. A later snapshot has the same attributes, and then its groups continue the one
    before; or it is read as a whole.
"""
import copy
import functools
import hashlib
import inspect
import os
import threading

from . import Map, _core, _pool_of
from ._encoding import decode, encode
from ._error import Error

_FORMAT = 2          # of the map that an object is; 1 had no digests of what callers called
_GROUPS = 1024       # places; half of them are used before the attributes are stored
_CALLS_MAX = 4096    # deferred in one group; the next one commits it
_CALLERS_MAX = 65_536
_COMMITTING = "it is in the middle of a commit"
_IMMUTABLE = (type(None), bool, int, float, str, bytes)
_objects = {}        # (pool, name): the object, until its pool is closed
_coming = set()      # (pool, name): objects that are being opened
_opening = threading.RLock()
_making = threading.local()  # of: the object whose logged call this thread makes


def _logged(kind):
    def mark(method):
        if isinstance(method, (property, staticmethod, classmethod)):
            raise TypeError(f"@{kind}: expected a method, found a {type(method).__name__}")
        name = method.__name__
        if any(is_kind(method) for is_kind in (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)):
            raise TypeError(f"{name}: a logged method has ended when its call returns: expected neither yield nor async")

        @functools.wraps(method)
        def call(self, *args, **more):
            return self._call(kind, name, method, args, more)
        call._holdfast_kind, call._holdfast_method = kind, method
        return call
    return mark


deferrable = _logged("deferrable")
deferrable.__doc__ = """A method that changes the object and returns nothing: made at once, durable with the next group.

What it does depends on the object and its arguments alone, for recovery calls it again: no clock, no file, nothing random.
An exception leaves what was changed before it, and is raised again, in vain, by recovery."""
instant = _logged("instant")
instant.__doc__ = """A method that changes the object; when it returns, it and all calls before it survive.

It is bound as a deferrable method is. What it returns is a copy."""


class Object:
    """A class whose objects survive: class Counter(holdfast.Object), Counter.open("file", "name").

    Its attributes are the values that holdfast.Map can store. Methods marked @deferrable and @instant change them. Any
    other method only looks; setting an attribute elsewhere raises AttributeError.
    """
    version = 1  # changed with what the attributes or logged methods mean
    _depth, _map = 0, None

    def __init_subclass__(cls, **more):
        super().__init_subclass__(**more)
        for each in cls.__mro__[:-1]:  # what is not in vars() would be lost, and what comes there unseen be stored
            if each.__dict__.get("__slots__"):
                raise TypeError(f"{cls.__qualname__}: expected a persistent class without __slots__, whose attributes are not stored")
            for name, value in vars(each).items():
                if isinstance(value, functools.cached_property):
                    raise TypeError(f"{cls.__qualname__}.{name}: a cached_property would be stored: use a property")
                if isinstance(value, (staticmethod, classmethod)) and hasattr(value.__func__, "_holdfast_kind"):
                    raise TypeError(f"{cls.__qualname__}.{name}: a logged method belongs to an object, not to its class")
        if (cls.__basicsize__, cls.__itemsize__) != (Object.__basicsize__, Object.__itemsize__):
            raise TypeError(f"{cls.__qualname__}: what its objects hold as {cls.__base__.__name__} would not be stored: keep one in an attribute")

    def __init__(self):
        pass

    @staticmethod
    def upgrade(version, attributes):
        """Attributes of this version of the class, of those of an older one. Not given: they are refused."""
        raise Error("wrong_layout", f"wrong_layout: version {version} of its class, and the class has no upgrade()")

    @classmethod
    def open(cls, where, name="object", /, *args, **options):
        """The object of this name in a pool, or in the file at that path with options as holdfast.open() has them.

        A missing object is made: __init__ gets args. Raises Error: wrong_layout (of another class,
        or version), function_changed (it left calls of a version of the class, or of a method, that
        does not exist any more; or that does something else now), corrupt, not_found (the pool is
        open read-only, and the object does not exist), and what holdfast.open() raises. TypeError:
        an attribute cannot be stored.
        """
        if type(name) is not str:
            raise TypeError(f"an object's name is a str, not {type(name).__name__}")
        if type(cls.version) is not int:  # which no open would find to be one
            raise TypeError(f"{cls.__qualname__}.version is an int, not {type(cls.version).__name__}")
        pool = _pool_of(where, options)
        pool._refuse_in_transaction()
        with _opening:
            there = _objects.get((pool, name))
            if there is not None:
                if type(there) is not cls:
                    raise Error("wrong_layout", f"wrong_layout: object {name!r} is open, of class {type(there).__qualname__}")
                return there
            if (pool, name) in _coming:  # by a signal handler, or by its own __init__: there would be two of it
                raise Error("in_use", f"in_use: object {name!r} is being opened")
            try:
                _coming.add((pool, name))
                return _opened(cls, pool, name, args)
            finally:
                _coming.discard((pool, name))

    def refresh(self):
        """Shows all that is committed now, where the pool is open with read_only and shared. Else it is shown already.

        Never goes back. Raises Error as open() does; then the object is as it was.
        """
        with self._lock:
            self._usable(to_change=False)
            if self._shown:
                vars(self)["_broken"] = "it is in the middle of a refresh"
                try:
                    _look_again(self)
                finally:
                    vars(self)["_broken"] = None

    def once(self, caller, number):
        """The object as one caller uses it, for its call of this number: once("client 7", 12).add(3).

        A call is made if its number is greater than that of the caller's last one. If the last one
        comes again, it is answered as it was, or raises Error "repeated" with what it raised. An
        earlier one raises Error "conflict". Another call, or one with other arguments, under a used
        number raises "bad_argument". So a caller without an answer asks again, whatever crash came
        between. caller is a str, int, or a tuple of these.
        """
        if not _names_caller(caller):
            raise TypeError("caller is a str, an int, or a tuple of these")
        encode(caller, hashable=True)
        if type(number) is not int or number < 0:
            raise TypeError("number is an int from 0 on")
        return _Once(self, caller, number)

    def forget(self, caller):
        """The caller will not call again. Commits what is deferred."""
        with self._lock:
            self._usable()
            if self._callers.pop(caller, None) is not None:
                _store(self)

    def sync(self):
        """Commits what is deferred."""
        with self._lock:
            self._usable()
            _commit(self)

    def checkpoint(self):
        """As sync; then stores the attributes, so that the next open has no call to make again."""
        with self._lock:
            self._usable()
            _commit(self)
            _store(self)

    def _usable(self, to_change=True):
        if self._map is None:
            raise TypeError(f"{type(self).__qualname__}.open(file, name) makes one")
        if self._depth:
            vars(self)["_misused"] = True
            raise RuntimeError(f"object {self._name!r} is in the middle of a logged method, which neither commits nor stores it, nor "
                               "does a signal handler")
        if self._broken is not None:
            raise Error("poisoned", f"poisoned: object {self._name!r}: {self._broken}: open the pool again")
        if self._map.pool.closed:
            raise Error("closed", "closed: the pool is closed")
        self._map.pool._refuse_in_transaction()
        if self._shown and to_change:
            raise Error("permission", f"permission: object {self._name!r}: the pool is open read-only, and this would change it")

    def _inside(self):
        return _Inside(self)

    def _call(self, kind, name, method, args, more, operation=()):
        if self._map is None:
            self._usable()
        making = getattr(_making, "of", None)
        if making is not None and making is not self:  # whatever the class takes for equal
            raise TypeError(f"{name}: a logged method calls none of another object: recovery would make that call once for "
                            "each of the two logs")
        with self._lock:
            if self._depth:  # part of the call that it is made by
                return method(self, *args, **more)
            self._usable()
            if _method_of(self, name) is not method:
                raise TypeError(f"{name}: recovery would call what class {type(self).__qualname__} has under this name, which is "
                                "something else, or not marked @deferrable or @instant")
            call = encode((name, args, more, *operation))
            if operation and (known := self._callers.get(operation[0])) is not None and operation[1] <= known[0]:
                return _answered(self, kind, operation, known, call)
            vars(self).update(_broken=f"{name}() was interrupted", _misused=False)
            try:
                result, raised = _make(self, method, call)
                if raised is not None and self._misused:  # perhaps by a signal handler, which recovery will not have
                    raise raised
                self._calls.append((call, type(raised).__qualname__ if raised is not None else None))
            except BaseException:  # KeyboardInterrupt: halfway, and not logged
                vars(self)["_depth"] = 0  # which it may have kept from being counted down
                _making.of = None
                if not self._map.pool.closed:
                    _commit_group(self)
                raise
            vars(self)["_broken"] = None
            if kind == "instant" or len(self._calls) == _CALLS_MAX:
                _commit(self)
            if raised is not None:
                raise raised
            if kind == "deferrable":
                if result is not None:
                    raise TypeError(f"{name}: a deferrable method returns nothing: @instant for one that does")
                return None
            try:
                return result if type(result) in _IMMUTABLE else copy.deepcopy(result)
            except TypeError as error:
                raise TypeError(f"{name}: the call was made; what it returned, a {type(result).__name__}, has no copy: {error}") from error

    def __setattr__(self, name, value):
        if self._map is None:
            self._usable()
        if isinstance(getattr(type(self), name, None), property):  # whose setter may call a logged method
            object.__setattr__(self, name, value)
            return
        if not self._depth or self._maker != threading.get_ident():
            raise AttributeError(f"{name!r} is set outside of a @deferrable or @instant method, where it would be lost")
        if name.startswith("_"):
            raise AttributeError(f"{name!r}: attributes that are stored begin with a letter")
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        if not self._depth or self._maker != threading.get_ident() or name.startswith("_"):
            raise AttributeError(f"{name!r} is deleted outside of a @deferrable or @instant method")
        object.__delattr__(self, name)

    def __reduce__(self):
        raise TypeError("a persistent object is opened, not pickled")


class _Once:
    """One call of one caller."""

    def __init__(self, of, caller, number):
        self._of, self._operation = of, (caller, number)

    def __getattr__(self, name):
        marked = getattr(type(self._of), name, None)
        kind, method = getattr(marked, "_holdfast_kind", None), getattr(marked, "_holdfast_method", None)
        if method is None:
            raise AttributeError(f"{name!r} is no @deferrable or @instant method of {type(self._of).__qualname__}")

        @functools.wraps(method)
        def call(*args, **more):
            return self._of._call(kind, name, method, args, more, self._operation)
        return call


def _names_caller(caller):
    """Not what is equal to another kind's, or not to itself: True, 1.0, NaN."""
    return type(caller) in (str, int) or type(caller) is tuple and all(map(_names_caller, caller))


def _answered(self, kind, operation, known, call):
    number, result, raised, called = known
    if operation[1] < number:
        raise Error("conflict", f"conflict: call {operation[1]} of caller {operation[0]!r}, whose last is {number}: its answer "
                                "is not kept")
    if called and called != hashlib.blake2b(call, digest_size=16).digest():
        raise Error("bad_argument", f"bad_argument: call {number} of caller {operation[0]!r} was of another method, or had other arguments")
    if kind == "instant":
        _commit(self)
    if raised is not None:
        raise Error("repeated", f"repeated: call {number} of caller {operation[0]!r} raised {raised}")
    return decode(result)


class _Inside:
    """Attributes may be set meanwhile, by this thread."""

    def __init__(self, of):
        self.of = of

    def __enter__(self):
        vars(self.of).update(_depth=self.of._depth + 1, _maker=threading.get_ident())

    def __exit__(self, *_):
        object.__setattr__(self.of, "_depth", self.of._depth - 1)


def _attach(self, pool, name):
    for attribute, value in (("_map", Map(pool, f"object {name}", when_durable="on_return")), ("_name", name), ("_depth", 0),
                             ("_lock", threading.RLock()), ("_calls", []), ("_next", 0), ("_stored", 0), ("_broken", None), ("_misused", False), ("_callers", {}),
                             ("_shown", pool._read_only), ("_seen", None)):
        object.__setattr__(self, attribute, value)


def _opened(cls, pool, name, args):
    """The object, as it is stored, or made."""
    self = cls.__new__(cls)
    _attach(self, pool, name)
    with self._map.snapshot() as stored:  # a writer beside goes on
        state = _state_in(self, stored)
        groups = _groups_in(self, stored, state[3]) if state is not None else []
    if state is not None:
        _recover(self, state, groups)
    elif self._shown:
        raise Error("not_found", f"not_found: there is no object {name!r}")
    else:
        with self._inside():
            self.__init__(*args)
        _store(self)
    _objects[pool, name] = self
    return self


def _make(self, method, call):
    """Makes a call from its log record; returns its result, and its exception."""
    _, args, more, *operation = decode(call)
    result = raised = None
    before, _making.of = getattr(_making, "of", None), self
    try:
        with self._inside():
            result = method(self, *args, **more)
        kept = encode(result) if operation else b""
    except (MemoryError, RecursionError):  # which depend on more than the object and its arguments
        raise
    except Exception as error:  # (1): what it changed stays, as recovery will find it
        raised = error
    finally:
        _making.of = before
    if operation:
        if len(self._callers) >= _CALLERS_MAX and operation[0] not in self._callers:
            self._callers.pop(next(iter(self._callers)))  # the caller whose last call is oldest
        self._callers.pop(operation[0], None)
        self._callers[operation[0]] = (operation[1], *((kept, None) if raised is None else (b"", _said(raised))), hashlib.blake2b(call, digest_size=16).digest())
    return result, raised


def _said(raised):
    """An exception in words that can be stored, whatever it holds."""
    try:
        said = str(raised)
    except Exception as error:
        said = f"which has no words ({type(error).__qualname__})"
    return f"{type(raised).__qualname__}: {said}".encode(errors="backslashreplace").decode()


def _method_of(self, name):
    """What a logged call of this name is, in the object's class. None: no logged method."""
    return getattr(getattr(type(self), name, None), "_holdfast_method", None)


def _attributes(self):
    return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def _load(self, attributes):
    with self._inside():
        for name, value in attributes.items():
            self.__setattr__(name, value)
        for name in _attributes(self):  # last: a thread that only looks finds each attribute that stays at any time
            if name not in attributes:
                object.__delattr__(self, name)


def _commit(self):
    if not self._calls:
        return
    if self._next - self._stored < _GROUPS:
        _commit_group(self)
    if self._next - self._stored >= _GROUPS // 2:
        try:
            _store(self)
        except (TypeError, ValueError, Error):  # put off, as long as there is room for the next group
            if self._calls or self._broken is not None:
                raise


def _commit_group(self):
    before, vars(self)["_broken"] = self._broken, _COMMITTING
    try:
        if self._calls and self._next - self._stored < _GROUPS:
            try:
                self._map[self._next % _GROUPS] = (self._next, list(self._calls))
            except BaseException as failed:
                vars(self)["_broken"] = f"a commit failed ({failed})"  # (3)
                raise
            vars(self).update(_next=self._next + 1, _calls=[])  # at once; interrupted before, the next commit writes this group again
    finally:
        if self._broken is _COMMITTING:
            vars(self)["_broken"] = before


def _store(self):
    """Stores the attributes, which all groups and what is deferred have made."""
    kind = type(self)
    vars(self)["_broken"] = "it was interrupted while its attributes were stored"
    try:
        attributes = encode(_attributes(self))
    except BaseException as error:  # nothing has been stored
        vars(self)["_broken"] = None
        if not isinstance(error, (TypeError, ValueError)):
            raise
        said = f"object {self._name!r}: its attributes cannot be stored: {error}"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(said) from None
    try:
        self._map["state"] = (_FORMAT, kind.__qualname__, kind.version, self._next, attributes, list(self._callers.items()))
    except Error as failed:  # of a full pool nothing is changed: what is logged, and deferred, still is
        vars(self)["_broken"] = None if failed.code == "pool_full" else f"a commit failed ({failed})"  # (3)
        raise
    vars(self).update(_stored=self._next, _calls=[])
    try:
        _load(self, decode(attributes))  # (1)
    finally:
        vars(self)["_depth"] = 0
    vars(self)["_broken"] = None


def _corrupt(self, what):
    return Error("corrupt", f"corrupt: object {self._name!r}: {what}")


def _state_in(self, stored):
    """Its stored attributes: format, class, version, number of the first group that they do not
    include, attributes, callers."""
    data = stored._stored("state")
    if data is None:
        return None
    state = _core.thawed(data)
    if type(state) is not tuple or [type(each) for each in state] != [int, str, int, int, bytes, list] or state[0] not in (1, _FORMAT):
        raise _corrupt(self, "expected its attributes, found another value")
    return state


def _groups_in(self, stored, first):
    """The groups from this number on."""
    groups = []
    while (data := stored._stored((first + len(groups)) % _GROUPS)) is not None:
        group = _core.thawed(data)
        if type(group) is not tuple or len(group) != 2 or type(group[0]) is not int or type(group[1]) is not list:
            raise _corrupt(self, "expected a group of calls, found another value")
        if group[0] != first + len(groups) or len(groups) == _GROUPS:
            break
        groups.append(group[1])
    return groups


def _recover(self, state, groups):
    _, kind, version, first, attributes, callers = state
    if kind != type(self).__qualname__:
        raise Error("wrong_layout", f"wrong_layout: object {self._name!r}: expected class {type(self).__qualname__}, found {kind}")
    found = decode(attributes)
    if type(found) is not dict or not all(type(each) is str and not each.startswith("_") for each in found):
        raise _corrupt(self, "expected its attributes as a dict of names, found another value")
    _check_version(self, version, groups)
    if version != type(self).version:
        found = type(self).upgrade(version, found)
        if type(found) is not dict:
            raise TypeError(f"{type(self).__qualname__}.upgrade() returns the new attributes, a dict, not {type(found).__name__}")
    _load(self, found)
    try:
        for caller, (number, result, raised, *called) in callers:
            if [type(each) for each in (number, result, *called)] != [int, bytes, bytes][:state[0] + 1]:
                raise TypeError
            self._callers[caller] = (number, result, raised, *(called or [b""]))
    except (TypeError, ValueError):
        raise _corrupt(self, "expected its callers, found another value") from None
    object.__setattr__(self, "_next", first + len(groups))
    object.__setattr__(self, "_stored", first)
    _make_again(self, groups)
    if self._shown:
        object.__setattr__(self, "_seen", state)
    if (groups or version != type(self).version) and not self._shown:
        try:
            _store(self)
        except Error:  # put off: the log has these calls still
            if self._broken is not None or version != type(self).version:
                raise


def _look_again(self):
    """Upholds (4)."""
    with self._map.snapshot() as stored:
        state = _state_in(self, stored)
        if state is None:
            raise _corrupt(self, "its attributes are gone")
        if state != self._seen:
            return _show(self, state, _groups_in(self, stored, state[3]))
        number = self._next
        groups = _groups_in(self, stored, number)
        _check_version(self, state[2], groups)
        vars(self)["_seen"] = None  # if all fails the next one reads it as a whole
        try:
            _make_again(self, groups)
            vars(self).update(_next=number + len(groups), _seen=state)
        except BaseException:
            _show(self, state, _groups_in(self, stored, state[3])[:number - state[3]])  # as it was
            raise


def _show(self, state, groups):
    """At once: a thread that looks, or code that looks after an error, finds the object before or
    behind it."""
    fresh = type(self).__new__(type(self))
    vars(fresh).update({name: value for name, value in vars(self).items() if name.startswith("_")}, _callers={}, _depth=0)
    _recover(fresh, state, groups)
    object.__setattr__(self, "__dict__", vars(fresh))


def _check_version(self, version, groups):
    if groups and version != type(self).version:
        raise _changed(self, f"it left calls of version {version} of its class, which has version {type(self).version}: "
                             "open and close it with the older one first")


def _changed(self, what):
    return Error("function_changed", f"function_changed: object {self._name!r}: {what}")


def _make_again(self, groups):
    for group in groups:
        for each in group:
            _again(self, each)


def _again(self, logged):
    try:
        call, raised = logged
        name, args, more, *_ = decode(call)
    except (TypeError, ValueError):
        raise _corrupt(self, "expected a logged call, found another value") from None
    method = _method_of(self, name) if type(name) is str else None
    if method is None:
        raise _changed(self, f"its log calls {name!r}, which is no logged method of class {type(self).__qualname__}")
    _, now = _make(self, method, call)
    if (type(now).__qualname__ if now is not None else None) != raised:
        raise _changed(self, f"{name}() {f'raised {raised}' if raised else 'returned'} when it was called, and now "
                             f"{f'raises {now!r}' if now is not None else 'returns'}") from now


def _settle(pool):
    """Keeps the deferred calls of a closing pool's objects. Returns the first error; None if all are kept."""
    with _opening:
        mine = [_objects.pop(key) for key in list(_objects) if key[0] is pool]
    failed = None
    for each in mine:
        with each._lock:
            if each._depth or each._broken is _COMMITTING:  # a signal handler closes, whose thread is in the middle of a call
                _commit_group(each)
                continue
            if each._broken is not None or each._shown or (not each._calls and each._next == each._stored):
                continue
            try:
                try:
                    _store(each)
                except (TypeError, ValueError, Error):  # the log has room for what attributes, or the pool, have not
                    _commit_group(each)
            except Error as error:
                failed = failed or error
    return failed


def _forked():
    """A child has no part in its parent's objects, and none of the threads that may have held a lock of theirs."""
    global _opening
    _opening = threading.RLock()
    _making.of = None
    for each in _objects.values():
        vars(each).update(_lock=threading.RLock(), _depth=0)
    _objects.clear()
    _coming.clear()


os.register_at_fork(after_in_child=_forked)
