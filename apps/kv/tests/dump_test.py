# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: `lru_crawler metadump` names every item, as memcached does, and delays no other client.

Method: the same items are stored in both servers and the lists compared without times, CAS numbers
and sizes; requests that are refused, in the same words. Then more items than a reply's buffer
takes, read slowly and beside clients that set and delete others: an item that was there all the
time is named once.

usage: dump_test.py holdfast-kv
"""

import re
import shutil
import subprocess
import sys
import threading
import time

from kv_testing import Folder, Memcached, Server, check, talk

PROGRAM = sys.argv[1]
LINE = re.compile(rb"key=(\S+) exp=(-1|\d+) la=(\d+) cas=(\d+) fetch=(yes|no) cls=(\d+) size=(\d+)\n")
STORED = (b"set plain 5 0 1\r\nx\r\nset with%%\xff/~-._ 0 1000 2\r\nyy\r\nset gone 0 -1 1\r\nx\r\nset read 0 0 1\r\nz\r\nget read\r\n"
          b"set old 0 0 1\r\nx\r\ndelete old\r\nms aGVsbG8h 2 b\r\nzz\r\nset " + b"k" * 250 + b" 0 0 1\r\nx\r\n")
ASKED = [b"lru_crawler metadump all\r\n", b"lru_crawler metadump hash\r\n"]
REFUSED = [b"lru_crawler\r\n", b"lru_crawler metadump\r\n", b"lru_crawler metadump all extra\r\n", b"lru_crawler metadump 0\r\n",
           b"lru_crawler metadump 64\r\n", b"lru_crawler metadump x\r\n", b"lru_crawler metadump 1,x\r\n", b"lru_crawler nonsense\r\n",
           b"lru_crawler mgdump all\r\n", b"lru_crawler metadump -1\r\n"]


def lines_of(answer):
    check(answer.endswith(b"END\r\n"), f"an end: {answer[-60:]}")
    body = answer[:-5]
    found = LINE.findall(body)
    check(sum(len(line) for line in body.splitlines(True)) == len(body) and len(found) == body.count(b"\n"), f"lines: {body[:200]}")
    return found


def known(answer, now):
    """The part of each key's line that both servers have alike."""
    said = {}
    for key, exp, la, _, fetched, _, _ in lines_of(answer):
        check(key not in said, f"{key} twice")
        check(abs(int(la) - now) < 60, f"{key}: last access {la}")
        said[key] = (exp == b"-1" or abs(int(exp) - now - 1000) < 60, exp == b"-1", fetched)
    return said


def ask(address, request):
    """A dump as memcached gives it: its crawler sometimes has yet to begin, or to end."""
    for _ in range(100):
        answer = talk(address, request, False)
        if not answer.startswith((b"BUSY", b"CLIENT_ERROR lru crawler disabled")):
            return answer
        time.sleep(0.05)
    return answer


def same_as_memcached(folder):
    with Server(PROGRAM, folder / "same.hf") as server:
        check(ask(server.address, ASKED[0]) == b"END\r\n", "of nothing")
        talk(server.address, STORED, False)
        ours = [known(ask(server.address, request), time.time()) for request in ASKED]
        refused = [talk(server.address, request, False) for request in REFUSED]
        check(ours[0] == ours[1] and set(ours[0]) == {b"plain", b"with%25%25%FF%2F~-._", b"read", b"hello%21", b"k" * 250},
              f"the items: {ours[0]}")
        classes = {line[5] for line in lines_of(ask(server.address, ASKED[0]))}
        one = lines_of(ask(server.address, b"lru_crawler metadump " + min(classes) + b"\r\n"))
        check(one and {line[5] for line in one} == {min(classes)}, "of one class")
        two = lines_of(ask(server.address, b"lru_crawler metadump " + b",".join(classes) + b"\r\n"))
        check(len(two) == len(ours[0]), "of all classes by number")
        check(talk(server.address, ASKED[0] + b"mn\r\n", False).endswith(b"END\r\nMN\r\n"), "what follows is answered")
        check(server.stop() == 0, "a clean stop")
    with Server(PROGRAM, folder / "same.hf", "-X") as server:
        forbidden = talk(server.address, ASKED[0], False)
        check(server.stop() == 0, "a clean stop")
    if shutil.which("memcached") is None:
        return
    with Memcached() as memcached:
        talk(memcached.address, STORED, False)
        check(known(ask(memcached.address, ASKED[0]), time.time()) == ours[0], "memcached's items")
        for request, answer in zip(REFUSED, refused):
            check(talk(memcached.address, request, False) == answer, f"{request}: {answer}")
    with Memcached("-X") as memcached:
        check(talk(memcached.address, ASKED[0], False) == forbidden, f"-X: {forbidden}")


def beside_writers(folder):
    """40 000 lines, some 3 MB: many turns of the serving thread."""
    count = 40_000
    with Server(PROGRAM, folder / "many.hf", "-t", "2") as server:
        stay = b"".join(b"set stay%d 0 0 1 noreply\r\nx\r\n" % i for i in range(count))
        check(talk(server.address, stay + b"mn\r\n", False) == b"MN\r\n", "filled")
        ended = threading.Event()

        def come_and_go():
            number = 0
            while not ended.is_set():
                number += 1
                piece = b"".join(b"set go%d 0 0 1 noreply\r\nx\r\ndelete go%d noreply\r\n" % (i, i - 40)
                                 for i in range(100 * number, 100 * number + 100))
                talk(server.address, piece + b"mn\r\n", False)

        writer = threading.Thread(target=come_and_go)
        writer.start()
        try:
            with server.connect() as client:
                client.sendall(ASKED[0])
                answer = b""
                while not answer.endswith(b"END\r\n"):
                    answer += client.recv(1 << 16)
                    if len(answer) < 1 << 20:
                        time.sleep(0.01)  # takes its replies slowly
            named = [line[0] for line in lines_of(answer)]
        finally:
            ended.set()
            writer.join()
        check(len(named) == len(set(named)), "none twice")
        check({b"stay%d" % i for i in range(count)} <= set(named), "every one that stayed")
        print(f"{len(named)} lines beside a writer")
        with server.connect() as client:  # a client that hangs up in the middle leaves nothing behind
            client.sendall(ASKED[0] * 20)
            client.recv(100)
        check(talk(server.address, b"mn\r\n", False) == b"MN\r\n", "serves on")
        check(server.stop() == 0, "a clean stop")


def listed(folder):
    """stats cachedump, for tools without another way to list items."""
    sizes = (1, 100, 100, 3000, 40000)
    keys = {b"key%d" % number for number in range(300)}
    with Server(sys.argv[1], folder / "listed.hf") as server:
        text = b"".join(b"set %s 0 %d %d\r\n%s\r\n" % (key, 5000 if key == b"key7" else 0, size, b"v" * size)
                        for key, size in ((key, sizes[int(key[3:]) % len(sizes)]) for key in keys))
        check(talk(server.address, text, False) == b"STORED\r\n" * 300, "stored")
        found = {}
        for number in range(1, 20):
            answer = talk(server.address, b"stats cachedump %d 0\r\n" % number, False)
            lines = re.findall(rb"ITEM (\S+) \[(\d+) b; (\d+) s\]\r\n", answer)
            check(answer == b"".join(b"ITEM %s [%s b; %s s]\r\n" % line for line in lines) + b"END\r\n", f"class {number}")
            found |= {key: (int(size), int(until)) for key, size, until in lines}
        check(set(found) == keys, f"{len(found)} of 300 keys listed")
        check(all(found[key][0] == sizes[int(key[3:]) % len(sizes)] for key in keys), "their sizes")
        check(found[b"key7"][1] > 1_700_000_000 and found[b"key8"][1] == 0, "their expiry times")
        few = talk(server.address, b"stats cachedump 2 5\r\n", False)
        check(few.count(b"ITEM ") == 5 and few.endswith(b"END\r\n"), f"five lines: {few}")
        if shutil.which("memcdump"):
            ran = subprocess.run(["memcdump", f"--servers={server.host}:{server.port}"], stdout=subprocess.PIPE, check=True, timeout=60)
            check(set(ran.stdout.split()) == keys, "memcdump")
        check(server.stop() == 0, "a clean stop")
    with Server(sys.argv[1], folder / "listed.hf", "-X") as server:
        refused = talk(server.address, b"stats cachedump 1 0\r\n", False)
        check(refused == b"CLIENT_ERROR stats cachedump not allowed\r\n", f"-X: {refused}")


def main():
    with Folder() as folder:
        listed(folder)
        same_as_memcached(folder)
        beside_writers(folder)


main()
