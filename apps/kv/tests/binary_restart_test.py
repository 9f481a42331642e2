# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: what a packet of the binary protocol acknowledged survives kill -9. A packet that was cut
short leaves its whole effect or none.

Method: items are made by every kind of packet, the server is killed, and the next one answers the
same. Then a server dies inside the sections of a set and of an increment, without an answer, and
the item is found as before or as after.
"""

import signal
import struct
import sys

from kv_testing import Folder, Server, check, check_pool, packet, packets, talk

GET, SET, ADD, REPLACE, DELETE, INCR, NOOP, GETK, APPEND = 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x0a, 0x0c, 0x0e
SETQ, GAT = 0x11, 0x1d


def storing(code, key, value, flags=0):
    return packet(code, key, value, struct.pack(">II", flags, 0))


def counting(key, delta, initial):
    return packet(INCR, key, b"", struct.pack(">QQI", delta, initial, 0))


MADE = (storing(SET, b"set", b"one", 7) + storing(ADD, b"add \0\r\n", b"two") + storing(SETQ, b"quiet", b"three") +
        storing(SET, b"again", b"x") + storing(REPLACE, b"again", b"y" * 5000) + packet(APPEND, b"again", b"z") +
        counting(b"number", 1, 41) + counting(b"number", 1, 0) + storing(SET, b"gone", b"x") + packet(DELETE, b"gone") +
        storing(SET, b"late", b"x") + packet(GAT, b"late", b"", struct.pack(">I", 5000)) + packet(NOOP))
TOLD = b"".join(packet(GETK, key) for key in (b"set", b"add \0\r\n", b"quiet", b"again", b"number", b"gone", b"late"))


def kill_and_tell(program, pool):
    with Server(program, pool) as server:
        found, rest = packets(talk(server.address, MADE, False))
        check(rest == b"" and len(found) == 12 and all(p.status == 0 for p in found), f"made: {found}")
        before = talk(server.address, TOLD, False)
        told = [(p.status, p.value) for p in packets(before)[0]]
        check(told == [(0, b"one"), (0, b"two"), (0, b"three"), (0, b"y" * 5000 + b"z"), (0, b"42"), (1, b""), (0, b"x")],
              f"told: {told}")
        server.kill()
    with Server(program, pool) as server:
        check(talk(server.address, TOLD, False) == before, "the same after the kill, CAS numbers too")
        check(server.stop() == 0, "a clean stop")


def die_in(program, checker, pool, point, request, old, new):
    with Server(program, pool) as server:
        talk(server.address, storing(SET, b"a", b"10"), False)
        cas = packets(talk(server.address, packet(GET, b"a"), False))[0][0].cas
        server.kill()
    with Server(program, pool, crash_at=point) as server:
        check(talk(server.address, request, False) == b"", f"{point}: answered by a server that was to die")
        check(server.died() == signal.SIGKILL, f"{point}: the server dies there")
    found = check_pool(checker, pool)
    check(found["re_executed"] + found["rolled_back"] == 1, f"{point}: one section recovered: {found}")
    with Server(program, pool) as server:
        told = packets(talk(server.address, packet(GET, b"a"), False))[0][0]
    check((told.value, told.cas == cas) in ((old, True), (new, False)), f"{point}: {told}")
    print(f"{point}: {'new' if told.value == new else 'old'}")


def main():
    program, checker = sys.argv[1:3]
    with Folder() as folder:
        kill_and_tell(program, folder / "pool.hf")
        if program.endswith("-mod"):
            return  # its commit is one store: there is no half of it
        die_in(program, checker, folder / "set.hf", "kv_replace", storing(SET, b"a", b"twelve"), b"10", b"twelve")
        die_in(program, checker, folder / "number.hf", "kv_number", counting(b"a", 5, 0), b"10", b"15")


main()
