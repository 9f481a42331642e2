# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: clients that are slow, huge, half-closed, gone or too many cost the server what its options say
and nobody else anything. Method: be such a client, a thousand times where that matters; measure the
server's memory and processor time; ask on another connection that it still answers, at once.

usage: hostile_clients_test.py PROGRAM [TRIAL...]: the functions of ALONE and TOGETHER; none named: all
"""

import contextlib
import os
import resource
import socket
import struct
import sys
import threading
import time

from kv_testing import Folder, Server, check, packet, packets

MB = 1 << 20
SECONDS_MAX = 120  # for what comes at once where nobody else needs the processors


def status_bytes(server, field):
    with open(f"/proc/{server.process.pid}/status") as status:
        return int(dict(line.split(":", 1) for line in status)[field].split()[0]) * 1024


def sanitized(server):
    return status_bytes(server, "VmSize") > 1 << 40


def own_memory(server):
    """In bytes; that of a sanitizer, which keeps freed blocks and maps terabytes, says nothing."""
    return 0 if sanitized(server) else status_bytes(server, "RssAnon")


def cpu_seconds(server):
    with open(f"/proc/{server.process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def ask(client, request, end=b"\r\n"):
    client.sendall(request)
    answer = b""
    while not answer.endswith(end):
        piece = client.recv(1 << 16)
        check(piece, f"an answer to {request[:40]!r}, not a hang-up after {answer[:80]!r}")
        answer += piece
    return answer


def stat(server, name, which=b"stats\r\n"):
    with server.connect() as client:
        answer = ask(client, which, b"END\r\n")
    return int(dict(line.split(b" ")[1:] for line in answer.splitlines() if line.startswith(b"STAT"))[name])


def becomes(condition, what, seconds=SECONDS_MAX):
    until = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < until, what)
        time.sleep(0.02)


def is_served(server):
    with server.connect() as client:
        client.settimeout(SECONDS_MAX)
        check(ask(client, b"set alive 0 0 1\r\nx\r\nget alive\r\n", b"END\r\n") ==
              b"STORED\r\nVALUE alive 0 1\r\nx\r\nEND\r\n", "another client is served")


def hung_up(client, seconds=SECONDS_MAX):
    """Whether the server closes within `seconds`; what it said before is thrown away."""
    client.settimeout(seconds)
    try:
        while client.recv(1 << 16):
            pass
    except socket.timeout:
        return False
    except ConnectionError:
        pass
    return True


def slow_writers(program, folder):
    with Server(program, folder / "slow.hf", "-c", "2000", "--buffer-limit", "32",
                "--request-timeout", "6") as server, contextlib.ExitStack() as open_clients:
        before = own_memory(server)
        clients = [open_clients.enter_context(server.connect()) for _ in range(1000)]
        for number, client in enumerate(clients):
            with contextlib.suppress(ConnectionError):
                client.sendall(b"set k%d 0 0 1000000\r\n" % number + b"v" * 100_000)
        becomes(lambda: stat(server, b"memory_kicks") > 0, "some are refused")
        grown = own_memory(server) - before
        held = stat(server, b"connection_bytes")
        refused = stat(server, b"memory_kicks")
        print(f"1000 clients with a tenth of a megabyte value: {refused} refused, "
              f"{held / MB:.0f} MiB reserved, {grown / MB:.0f} MiB more memory")
        # Each of the four workers may be about to refuse one more, whose buffers it has counted.
        check(held <= 33 * MB and grown < 72 * MB, f"unfinished requests are within --buffer-limit: {held} bytes")
        check(100 < refused < 1000, "who is within the limit is kept")
        is_served(server)
        becomes(lambda: stat(server, b"curr_connections") == 1, "the rest is hung up on in time")
        check(stat(server, b"connection_bytes") == 0, "nothing is held for clients that are gone")
        check(stat(server, b"memory_kicks") + stat(server, b"stalled_kicks") == 1000, "each for its reason")


def claimed_gigabyte(program, folder):
    with Server(program, folder / "claims.hf", "-I", "256m", "-m", "512") as server:
        with server.connect() as liar, server.connect() as patient:
            before = own_memory(server)
            answer = ask(liar, b"set huge 0 0 1073741824\r\n")
            check(answer == b"SERVER_ERROR object too large for cache\r\n", "a gigabyte is refused")
            for _ in range(64):
                liar.sendall(b"v" * MB)
            patient.sendall(b"set large 0 0 250000000\r\n" + b"v" * 500_000)
            becomes(lambda: stat(server, b"connection_bytes") >= 500_000, "it arrives")
            held, grown = stat(server, b"connection_bytes"), own_memory(server) - before
            print(f"64 MiB of a refused gigabyte, 0.5 MB of 250 MB: {held >> 10} KiB reserved, "
                  f"{grown >> 10} KiB more memory")
            check(held <= 2 * MB and grown < 4 * MB, "reserved is what arrived, not what was announced")
            is_served(server)


def binary_lengths(program, folder):
    """Packets of the binary protocol whose lengths are as long as can be written."""
    def header(code, key_bytes, extras_bytes, body_bytes):
        return struct.pack(">BBHBBHIIQ", 0x80, code, key_bytes, extras_bytes, 0, 0, body_bytes, 0, 0)

    with Server(program, folder / "packets.hf", "--buffer-limit", "4", "--request-timeout", "4") as server:
        before = own_memory(server)
        with server.connect() as liar, server.connect() as fool:
            liar.sendall(header(0x01, 1, 8, 0xffffffff) + b"\0" * 8 + b"a")
            fool.sendall(header(0x7f, 0, 0, 0xffffffff))
            for client, status in ((liar, 3), (fool, 0x81)):
                found, rest = packets(client.recv(1000))
                check([p.status for p in found] == [status] and rest == b"", "four gigabytes are refused")
            for _ in range(64):
                liar.sendall(b"v" * MB)
                fool.sendall(packet(0x0a) * (MB // 24))
            check(stat(server, b"connection_bytes") <= 2 * MB, "what is refused is passed over")
            fool.settimeout(0.2)
            with contextlib.suppress(socket.timeout):
                check(fool.recv(1) == b"", "nothing in it is a command")
        clients = [server.connect() for _ in range(300)]
        for client in clients:
            with contextlib.suppress(ConnectionError):
                client.sendall(header(0x01, 65535, 255, 0xffffffff) + b"k" * 60_000)
        becomes(lambda: stat(server, b"memory_kicks") > 0, "some are refused")
        held, grown = stat(server, b"connection_bytes"), own_memory(server) - before
        print(f"300 clients with most of a key of 65535 bytes: {held / MB:.1f} MiB reserved, {grown / MB:.1f} MiB more memory")
        check(held <= 4 * MB and grown < 16 * MB, "long keys are within --buffer-limit")
        is_served(server)
        becomes(lambda: stat(server, b"curr_connections") == 1, "the rest is hung up on in time")
        for client in clients:
            client.close()


def never_reads(program, folder):
    """100 items for each of 200 clients that read nothing, each item more than the kernel buffers: on a
    Unix socket that is what SO_SNDBUF says, while TCP's buffers grow as the machine is set up."""
    with socket.socket(socket.AF_UNIX) as any_socket:
        buffered = any_socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    value = b"v" * max(1_000_000, 2 * buffered)
    with Server(program, folder / "replies.hf", "-I", str(2 * len(value)), "--buffer-limit", "4",
                "--request-timeout", "3", unix=folder / "replies.socket") as server:
        with server.connect() as client:
            check(ask(client, b"set big 0 0 %d\r\n%s\r\n" % (len(value), value)) == b"STORED\r\n", "a megabyte")
        before = own_memory(server)
        clients = [server.connect() for _ in range(200)]
        for client in clients:
            client.sendall(b"get" + b" big" * 100 + b"\r\n")
        becomes(lambda: stat(server, b"memory_kicks") > 0, "some are hung up on")
        time.sleep(0.3)
        grown, held = own_memory(server) - before, stat(server, b"connection_bytes")
        print(f"200 times 100 items not read: {held / MB:.0f} MiB reserved, {grown / MB:.0f} MiB more memory")
        # Beside the limit: what each of four threads gathers, and one item each.
        check(held <= 4 * MB and grown < 20 * MB + 4 * len(value), "unread replies are within --buffer-limit")
        is_served(server)
        becomes(lambda: stat(server, b"curr_connections") == 1, "who does not read is hung up on in time")
        for client in clients:
            client.close()


def half_closed(server):
    """All requests in one go, then shutdown(SHUT_WR): every reply comes, then the end."""
    requests, value = 100_000, b"v" * 1000
    with server.connect() as client:
        ask(client, b"set a 0 0 1000\r\n%s\r\n" % value)
        received = []

        def read():
            pieces = 0
            while piece := client.recv(1 << 20):
                pieces += len(piece)
                last = piece[-5:]
            received.append((pieces, last))

        reader = threading.Thread(target=read)
        reader.start()
        client.sendall(b"get a\r\n" * requests)
        client.shutdown(socket.SHUT_WR)
        reader.join(SECONDS_MAX)
        one = len(b"VALUE a 0 1000\r\n") + 1000 + len(b"\r\nEND\r\n")
        check(received == [(requests * one, b"END\r\n")], f"{requests} replies after the half-close: {received}")
    with server.connect() as client:  # reads only later: the kernel takes the requests, not the replies
        ask(client, b"set b 0 0 1000000\r\n%s\r\n" % (value * 1000))
        client.sendall(b"get b\r\n" * 100)
        client.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        used, started = cpu_seconds(server), time.monotonic()
        time.sleep(1)
        used = (cpu_seconds(server) - used) / (time.monotonic() - started)
        print(f"waiting for a half-closed client to read: {used * 100:.1f} % of a processor")
        check(used < 0.1, "no spinning on a half-closed client")
        got = 0
        while piece := client.recv(1 << 20):
            got += len(piece)
        one = len(b"VALUE b 0 1000000\r\n") + 1_000_000 + len(b"\r\nEND\r\n")
        check(got == 100 * one, "all replies, however late")


def vanishing(server):
    """Gone in the middle of a value, or of a reply, with FIN and with RST."""
    open_before = descriptors(server)
    for number in range(300):
        client = server.connect()
        if number % 3 == 0:
            client.sendall(b"get b\r\n" * 5)
        else:
            client.sendall(b"set gone 0 0 5000\r\n" + b"v" * (4000 if number % 2 else 5000))
        if number % 4 < 2:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    becomes(lambda: descriptors(server) == open_before, "no descriptor stays behind")
    becomes(lambda: stat(server, b"connection_bytes") == 0, "no memory stays behind")
    with server.connect() as client:
        check(ask(client, b"get gone\r\n", b"END\r\n") == b"END\r\n", "no part of a value was stored")


def idle_cost(server):
    clients = [server.connect() for _ in range(500)]
    for client in clients:
        client.sendall(b"get none\r\nset half 0 0 100\r\nv")
    for client in clients:
        check(client.recv(100) == b"END\r\n", "an answer")
    used = cpu_seconds(server)
    time.sleep(2)
    used = (cpu_seconds(server) - used) / 2
    print(f"500 clients with half a request: {used * 100:.1f} % of a processor")
    check(used < 0.03, "waiting costs nothing")
    for client in clients:
        client.close()


def out_of_descriptors(server):
    """The clients that find no descriptor wait; nobody spins; each is served when another leaves."""
    is_served(server)  # its threads have their descriptors
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (descriptors(server) + 10, limits[1]))
    clients = [server.connect() for _ in range(30)]
    for client in clients:
        client.sendall(b"version\r\n")
    time.sleep(0.2)
    used = cpu_seconds(server)
    time.sleep(1)
    used = cpu_seconds(server) - used
    print(f"out of descriptors: {used * 100:.1f} % of a processor")
    check(used < 0.1, "no spinning on accept")
    for client in clients:  # in the order they came
        check(ask(client, b"").startswith(b"VERSION"), "each is served in its turn")
        client.close()
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)
    is_served(server)


def out_of_memory(program, folder):
    """The operating system refuses memory: the client that needed it goes, the server stays."""
    with Server(program, folder / "memory.hf", "-I", "128m", "-m", "512", "-t", "1",
                unix=folder / "memory.socket") as server:
        with server.connect() as client:
            ask(client, b"set large 0 0 60000000\r\n" + b"v" * 60_000_000 + b"\r\n")
        is_served(server)
        if sanitized(server):
            return
        # Until the first client's buffer is given back, its room would serve the next.
        becomes(lambda: stat(server, b"curr_connections") == 1, "the first client is gone")
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_AS)
        now = status_bytes(server, "VmSize")
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (now + 16 * MB, limits[1]))
        with server.connect() as writer:
            with contextlib.suppress(ConnectionError):
                writer.sendall(b"set other 0 0 100000000\r\n" + b"v" * 100_000_000)
            check(hung_up(writer), "a request without memory is hung up on")
        with server.connect() as reader:
            reader.sendall(b"get large\r\n")
            check(hung_up(reader), "a reply without memory is hung up on")
        check(stat(server, b"memory_kicks") == 2, "both for want of memory")
        is_served(server)
        with server.connect() as client:  # the lock that the reader held is free
            client.settimeout(SECONDS_MAX)
            check(ask(client, b"delete large\r\n") == b"DELETED\r\n", "the item can still be changed")
        check(server.stop() == 0, "a clean stop")


def greedy_reader(program, folder):
    """A terabyte asked for in one line and read as fast as it comes holds nobody up: the server's one thread answers
    others after a little work of its own. An answer's time would count the machine's other work, too."""
    with Server(program, folder / "greedy.hf", "-t", "1") as server, server.connect() as greedy:
        ask(greedy, b"set big 0 0 1000000\r\n" + b"v" * 1_000_000 + b"\r\n")
        stop = threading.Event()

        def read():
            buffer = bytearray(4 * MB)
            while not stop.is_set() and greedy.recv_into(buffer):
                pass

        reader = threading.Thread(target=read)
        greedy.sendall(b"get" + b" big" * 1_000_000 + b"\r\n")
        reader.start()
        time.sleep(0.3)
        works = []
        try:
            with server.connect() as client:
                client.settimeout(SECONDS_MAX)
                for _ in range(20):
                    worked = cpu_seconds(server)
                    check(ask(client, b"get none\r\n", b"END\r\n") == b"END\r\n", "an answer")
                    works.append(cpu_seconds(server) - worked)
        finally:
            stop.set()
            reader.join()
        print(f"beside a client that reads a terabyte: an answer after at most {max(works) * 1000:.0f} ms of work")
        check(max(works) < 2, "a long retrieval gives way")


def slow_loris(program, folder):
    """Half a request and a byte now and then is hung up on; idle clients and slow but working ones stay."""
    with Server(program, folder / "loris.hf", "--request-timeout", "6") as server:
        idle, working = server.connect(), server.connect()
        drips = [server.connect() for _ in range(3)]
        for client, begin in zip(drips, (b"get ", b"set a 0 0 1000\r\n", b"set a 0 0 5000000\r\n")):
            client.sendall(begin)
        working.sendall(b"get no")
        alive = list(drips)
        for _ in range(40):  # 12 s
            time.sleep(0.3)
            for client in list(alive):
                try:
                    client.sendall(b"a")
                except ConnectionError:
                    alive.remove(client)
            check(ask(working, b"ne\r\nget no", b"END\r\n") == b"END\r\n", "who gets on is kept")
        check(not alive, "a byte now and then is not progress")
        check(ask(idle, b"get none\r\n", b"END\r\n") == b"END\r\n", "an idle client is kept")
        check(stat(server, b"stalled_kicks") == 3 and stat(server, b"idle_kicks") == 0, "three stalled")
        for client in (idle, working, *drips):
            client.close()
    with Server(program, folder / "loris.hf", "--idle-timeout", "1") as server, server.connect() as idle:
        check(ask(idle, b"get none\r\n", b"END\r\n") == b"END\r\n", "an answer")
        check(hung_up(idle), "an idle client is hung up on when that is asked for")
        check(stat(server, b"idle_kicks") == 1, "and counted")


# Trials with a server of their own, and trials that share one.
ALONE = (slow_writers, claimed_gigabyte, binary_lengths, never_reads, out_of_memory, greedy_reader, slow_loris)
TOGETHER = (half_closed, vanishing, idle_cost, out_of_descriptors)


def main():
    program = sys.argv[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with Folder() as folder:
        wanted = [globals()[name] for name in sys.argv[2:]] or [*ALONE, *TOGETHER]
        for trial in (trial for trial in wanted if trial in ALONE):
            trial(program, folder)
        with Server(program, folder / "pool.hf") as server:
            for trial in (trial for trial in wanted if trial in TOGETHER):
                trial(server)
            check(server.stop() == 0, "a clean stop")


main()
