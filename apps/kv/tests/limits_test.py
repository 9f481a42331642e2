# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: no client can make the server hold more than its share. Method: more connections than -c
allows; a client that asks for gigabytes and reads nothing, then everything; values sent in drips; idle
connections by the hundred; a line without an end."""

import socket
import sys

from kv_testing import Folder, Server, check


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["RssAnon"].split()[0]) * 1024


def too_many_connections(program, folder):
    with Server(program, folder / "few.hf", "-c", "4") as server:
        clients = []
        for _ in range(4):
            client = server.connect()
            client.sendall(b"version\r\n")  # answered: accepted and counted
            check(client.recv(100).startswith(b"VERSION"), "a client within the limit")
            clients.append(client)
        check(server.connect().recv(100) == b"ERROR Too many open connections\r\n", "one too many")
        clients.pop().close()
        for _ in range(1000):  # until the server has seen the close
            with server.connect() as client:
                try:
                    client.sendall(b"version\r\n")
                    if client.recv(100).startswith(b"VERSION"):
                        break
                except ConnectionError:
                    pass
        else:
            check(False, "a place that was given up is taken again")
        check(server.stop() == 0, "a clean stop with clients connected")


def reader_that_does_not_read(server):
    size, times = 1_000_000, 1000
    with server.connect() as client, server.connect() as other:
        client.sendall(b"set big 0 0 %d\r\n%s\r\n" % (size, b"v" * size))
        check(client.recv(100) == b"STORED\r\n", "a megabyte")
        before = resident_bytes(server)
        client.sendall(b"get big\r\n" * (times // 2) + b"get" + b" big" * (times // 2) + b"\r\n")
        client.recv(1, socket.MSG_PEEK)  # the server has begun to answer
        grown = 0
        for _ in range(200):
            other.sendall(b"get none\r\n")
            check(other.recv(100) == b"END\r\n", "others are served meanwhile")
            grown = max(grown, resident_bytes(server) - before)
        print(f"{times} MB asked for and not read: {grown >> 10} KiB more memory")
        check(grown < 20 << 20, "bounded output")
        expected = times * (len(b"VALUE big 0 %d\r\n" % size) + size + 2) + (times // 2 + 1) * len(b"END\r\n")
        buffer, missing = bytearray(1 << 20), expected
        while missing > 0:
            got = client.recv_into(buffer)
            check(got > 0, "the server hung up")
            missing -= got
        check(missing == 0 and buffer[:got].endswith(b"\r\nEND\r\n"), "everything arrives in the end")


def many_idle(server):
    before = resident_bytes(server)
    clients = [server.connect() for _ in range(500)]
    for client in clients:
        client.sendall(b"get none\r\nge")  # half a request stays
    for client in clients:
        check(client.recv(100) == b"END\r\n", "an answer")
    grown = resident_bytes(server) - before
    print(f"500 connections with half a request: {grown >> 10} KiB more memory")
    check(grown < 8 << 20, "idle connections own little")
    for client in clients:
        client.sendall(b"t none\r\n")
    for client in clients:
        check(client.recv(100) == b"END\r\n", "the other half")
        client.close()


def drips(server):
    with server.connect() as client:
        for piece in (b"s", b"et drip 0 0 6\r", b"\nab", b"cd\r", b"\n\r", b"\nget d", b"rip\r\n"):
            client.sendall(piece)
        answer = b""
        while not answer.endswith(b"END\r\n"):
            answer += client.recv(100)
        check(answer == b"STORED\r\nVALUE drip 0 6\r\nabcd\r\n\r\nEND\r\n", f"a value in drips: {answer}")
        client.sendall(b"x" * 5000)
        check(client.recv(100) == b"CLIENT_ERROR line too long\r\n", "a line without an end")
        try:
            check(client.recv(100) == b"", "hung up")
        except ConnectionResetError:
            pass


def main():
    with Folder() as folder:
        too_many_connections(sys.argv[1], folder)
        with Server(sys.argv[1], folder / "pool.hf") as server:
            reader_that_does_not_read(server)
            many_idle(server)
            drips(server)
            check(server.stop() == 0, "a clean stop")


main()
