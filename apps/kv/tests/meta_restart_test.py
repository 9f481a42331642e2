# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: what meta commands acknowledged survives kill -9. A command that was cut short leaves its
whole effect or none.

Method: items with every mark are made, the server is killed, and the next one reports the same of
them. Then a server dies inside the sections of `md` with I and of `ma` with T; the item is found as
before or as after, in all its parts.
"""

import re
import signal
import sys

from kv_testing import Folder, Server, check, check_pool, talk

MADE = (b"ms set 3 F7 T5000 k\r\nabc\r\n" b"ms " b"YmluYXJ5" b" 1 b\r\nx\r\n" b"mg vivified N5000\r\n"
        b"ms stale 1 T5000\r\nx\r\nmd stale I\r\n" b"ms won 1\r\nx\r\nmd won I T5000\r\nmg won\r\n"
        b"ms older 1\r\nx\r\nms older 1 I C1\r\ny\r\nmg older\r\n" b"ma number N5000 J41\r\nma number\r\n"
        b"ms gone 1\r\nx\r\nmd gone\r\n")
ANSWERED = (b"HD kset\r\n" b"HD\r\n" b"HD W\r\n" b"HD\r\nHD\r\n" b"HD\r\nHD\r\nHD X W\r\n"
            b"HD\r\nHD\r\nHD X W\r\n" b"HD\r\nHD\r\n" b"HD\r\nHD\r\n")
TOLD = (b"mg set v f k u\r\nmg YmluYXJ5 b k v u\r\nmg vivified s v\r\nmg won\r\nmg older v\r\nmg number v\r\n"
        b"mg gone\r\nmg set c\r\nmg vivified c\r\nmg won c\r\nmg older c\r\nmg number c\r\n")
EXPECTED = (b"VA 3 f7 kset\r\nabc\r\nVA 1 kYmluYXJ5 b\r\nx\r\nVA 0 s0 Z\r\n\r\nHD Z X\r\nVA 1 Z X\r\ny\r\n"
            b"VA 2\r\n42\r\nEN\r\n")


def kill_and_tell(program, pool):
    with Server(program, pool) as server:
        answer = talk(server.address, MADE, False)
        check(answer == ANSWERED, f"made: {answer}")
        before = talk(server.address, TOLD, False)
        check(before.startswith(EXPECTED), f"told: {before}")
        server.kill()
    with Server(program, pool) as server:
        after = talk(server.address, TOLD, False)
        check(after == before, f"before the kill {before}, after it {after}")
        for key in (b"set", b"vivified", b"stale", b"won", b"number"):
            left = re.search(rb" t(\d+)", talk(server.address, b"mg %s t\r\n" % key, False))
            check(left and 4000 < int(left.group(1)) <= 5000, f"{key}: expires")
        # `mg stale` above won what nobody had won before the kill.
        check(talk(server.address, b"mg stale\r\n", False) == b"HD Z X\r\n", "the first to ask has won")
        check(server.stop() == 0, "a clean stop")


def die_in(program, checker, pool, point, request, old, new):
    with Server(program, pool) as server:
        talk(server.address, b"ms a 2\r\n10\r\n", False)
        cas = re.search(rb"c(\d+)", talk(server.address, b"mg a c\r\n", False)).group(1)
        server.kill()
    with Server(program, pool, crash_at=point) as server:
        check(talk(server.address, request, False) == b"", f"{point}: answered by a server that was to die")
        check(server.died() == signal.SIGKILL, f"{point}: the server dies there")
    found = check_pool(checker, pool)
    check(found["re_executed"] + found["rolled_back"] == 1, f"{point}: one section recovered: {found}")
    with Server(program, pool) as server:
        told = talk(server.address, b"mg a v t c u\r\n", False)
    same = b" c" + cas + b" " in told.replace(b"\r\n", b" ")
    told = re.sub(rb" c\d+", b"", re.sub(rb"t[45]\d\d", b"tT", told))
    check((told == old and same) or (told == new and not same), f"{point}: {told}, its CAS {'old' if same else 'new'}")
    print(f"{point}: {'new' if told == new else 'old'}")


def main():
    program, checker = sys.argv[1:3]
    with Folder() as folder:
        kill_and_tell(program, folder / "pool.hf")
        if program.endswith("-mod"):
            return  # its commit is one store: there is no half of it
        die_in(program, checker, folder / "state.hf", "kv_state", b"md a I T500\r\n",
               b"VA 2 t-1\r\n10\r\n", b"VA 2 tT X W\r\n10\r\n")
        die_in(program, checker, folder / "number.hf", "kv_number", b"ma a MD T500\r\n",
               b"VA 2 t-1\r\n10\r\n", b"VA 2 tT\r\n9 \r\n")


main()
