# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: with -Z clients use TLS, as with memcached 1.6.18, and items survive a kill. A client that
does not, or may not, is hung up on and changes nothing. Method: Python's ssl, pymemcache and
openssl's s_client as clients; certificates of a CA made for the test, right and wrong; bytes that
are not TLS; handshakes that stall; the other tests run through a tunnel (KV_TEST_TLS).
"""

import contextlib
import os
import random
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time

from kv_testing import Folder, Memcached, Server, check, needs, talk
from tls_tunnel import bytes_answered, client_context, make_certificate

PROGRAM = sys.argv[1]
needs("openssl")


def secured(certificate, key, *more):
    return "-Z", "-o", ",".join([f"ssl_chain_cert={certificate}", f"ssl_key={key}", *more])


def connect(address, context):
    plain = socket.create_connection(address)
    plain.settimeout(30)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain, server_hostname="localhost")


def ask(client, request, until):
    client.sendall(request)
    answer = b""
    while not answer.endswith(until):
        piece = client.recv(1 << 16)
        if not piece:
            break
        answer += piece
    return answer


def refused_at_once(address, context):
    """Whether the server hangs up on this client before it has answered anything."""
    try:
        with connect(address, context) as client:  # with TLS 1.3 a client hears of it behind the handshake
            return ask(client, b"mn\r\n", b"MN\r\n") != b"MN\r\n"
    except (ssl.SSLError, ConnectionError):
        return True


def stats(address, context, words=b""):
    with connect(address, context) as client:
        return dict(re.findall(rb"STAT (\S+) (\S+)", ask(client, b"stats" + words + b"\r\n", b"END\r\n")))


def survives_a_kill(folder, pair):
    pool, context = folder / "pool.hf", client_context(pair[0])
    with Server(PROGRAM, pool, *secured(*pair)) as server:
        with connect(server.address, context) as client:
            for i in range(2000):
                check(ask(client, b"set k%d 0 0 4\r\n%04d\r\n" % (i, i), b"\r\n") == b"STORED\r\n", "a set by TLS")
        server.kill()
    with Server(PROGRAM, pool, *secured(*pair)) as server:
        with connect(server.address, context) as client:
            for i in range(2000):
                check(b"%04d" % i in ask(client, b"get k%d\r\n" % i, b"END\r\n"), f"k{i} after a kill")
        said = subprocess.run(["openssl", "s_client", "-quiet", "-verify_return_error", "-CAfile", pair[0], "-connect",
                               "{}:{}".format(*server.address)], input=b"get k7\r\nquit\r\n", capture_output=True, timeout=60)
        check(b"VALUE k7 0 4\r\n0007\r\nEND\r\n" in said.stdout, f"openssl's client: {said}")
        with contextlib.suppress(ImportError):
            import pymemcache
            with contextlib.closing(pymemcache.Client(server.address, tls_context=context, timeout=30)) as client:
                client.set("much", b"x" * 900_000)
                check(client.get("much") == b"x" * 900_000 and client.get("k9") == b"0009", "pymemcache")


def records_and_replies_of_any_size(folder, pair):
    """Values over several records, many requests in one, a client that takes its time, one byte a record."""
    context = client_context(pair[0])
    with Server(PROGRAM, folder / "sizes.hf", *secured(*pair), "-m", "64") as server:
        value = random.Random(1).randbytes(700_000)
        with connect(server.address, context) as client:
            check(ask(client, b"set v 0 0 %d\r\n" % len(value) + value + b"\r\n", b"\r\n") == b"STORED\r\n", "a large value")
            client.sendall(b"get v\r\n" * 60)  # 42 MB: more than any buffer
            time.sleep(0.5)
            for number in range(60):
                head = b"VALUE v 0 %d\r\n" % len(value)
                wanted, found = len(head) + len(value) + 7, b""
                while len(found) < wanted:
                    piece = client.recv(wanted - len(found))
                    check(piece, f"reply {number} ended early")
                    found += piece
                check(found == head + value + b"\r\nEND\r\n", f"reply {number}")
            for byte in b"set one 0 0 3\r\nabc\r\nget one\r\n":
                client.sendall(bytes([byte]))
            check(ask(client, b"", b"END\r\n").endswith(b"abc\r\nEND\r\n"), "a byte a record")
            # All that is asked before a client's end is answered, however late it is read.
            wanted = 60 * (len(b"VALUE v 0 700000\r\n") + len(value) + 7)
            found = bytes_answered(server.address, context, b"get v\r\n" * 60, 0.5)
            check(found == wanted, f"{found} bytes of late replies, not {wanted}")
            # Many requests, which the server reads in pieces of its own: TLS has the rest, and no readiness says so.
            client.sendall(b"mn\r\n" * 60_000)
            check(len(ask(client, b"get none\r\n", b"END\r\n")) == 60_000 * 4 + 5, "requests that TLS holds")
        check(talk(server.address, b"set k 0 0 1\r\n1\r\nget one\r\n", False)[:1] not in (b"S", b"V"), "plain, on TLS's port")
        with connect(server.address, context) as client:
            check(ask(client, b"get k\r\n", b"END\r\n") == b"END\r\n", "a plain client's set was executed")


def watched(folder, pair):
    context = client_context(pair[0])
    with Server(PROGRAM, folder / "watched.hf", *secured(*pair)) as server:
        with connect(server.address, context) as watcher, connect(server.address, context) as client:
            check(ask(watcher, b"watch mutations\r\n", b"OK\r\n") == b"OK\r\n", "watch")
            ask(client, b"set seen 0 0 1\r\n1\r\n", b"\r\n")
            check(b"key=seen" in ask(watcher, b"", b"\n"), "what a watcher is told")


def only_whom_the_ca_knows(folder, ca, pair):
    """ssl_verify_mode: 0 asks no client, 2 and 3 refuse a client without a certificate of the
    CA."""
    known, foreign = make_certificate(folder.path, "client", issuer=ca), make_certificate(folder.path, "foreign")
    nobody = client_context(ca[0])
    friend, stranger = client_context(ca[0]), client_context(ca[0])
    friend.load_cert_chain(*known)
    stranger.load_cert_chain(*foreign)
    for mode, serves in (("0", (True, True, True)), ("1", (True, True, False)), ("2", (False, True, False)),
                         ("require", (False, True, False)), ("3", (False, True, False))):
        options = secured(*pair, f"ssl_ca_cert={ca[0]}", f"ssl_verify_mode={mode}")
        with Server(PROGRAM, folder / f"verify-{mode}.hf", *options) as server:
            found = tuple(not refused_at_once(server.address, who) for who in (nobody, friend, stranger))
            check(found == serves, f"ssl_verify_mode={mode}: without, with, with a foreign certificate: {found}")
            told = stats(server.address, friend)
            check(int(told[b"ssl_handshake_errors"]) == found.count(False), f"ssl_verify_mode={mode}: {told}")


def what_is_negotiated(folder, pair):
    old = client_context(pair[0])
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with Server(PROGRAM, folder / "version.hf", *secured(*pair, "ssl_min_version=tlsv1.3")) as server:
        check(refused_at_once(server.address, old), "TLS 1.2 where 1.3 is the least")
        told = stats(server.address, client_context(pair[0]), b" settings")
        check((told[b"ssl_enabled"], told[b"ssl_min_version"]) == (b"yes", b"tlsv1.3"), f"{told}")
    with Server(PROGRAM, folder / "version.hf", *secured(*pair, "ssl_ciphers=ECDHE-ECDSA-AES256-GCM-SHA384")) as server:
        with connect(server.address, old) as client:
            check(client.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384", f"{client.cipher()}")


def another_certificate(folder, ca):
    """refresh_certs: later clients see the new certificate; a file without one changes nothing."""
    first, second = make_certificate(folder.path, "first", issuer=ca), make_certificate(folder.path, "second", issuer=ca)
    used = folder / "used.pem", folder / "used.key"
    for source, to in zip(first, used):
        shutil.copy(source, to)

    def name(client):
        return dict(pair for pairs in client.getpeercert()["subject"] for pair in pairs)["commonName"]

    context = client_context(ca[0])
    with Server(PROGRAM, folder / "refresh.hf", *secured(*used)) as server:
        with connect(server.address, context) as before:
            check(name(before) == "first", "the first certificate")
            shutil.copy(second[0], used[0])  # whose key is not there yet
            said = ask(before, b"refresh_certs\r\n", b"\r\n")
            check(said.startswith(b"Error ") and said.count(b"\n") == 1, f"half of a pair: {said}")
            with connect(server.address, context) as client:
                check(name(client) == "first", "the first, as the second was refused")
            shutil.copy(second[1], used[1])
            check(ask(before, b"refresh_certs\r\n", b"\r\n") == b"OK\r\n", "refresh_certs")
            with connect(server.address, context) as client:
                check(name(client) == "second", "the second certificate")
            check(ask(before, b"mn\r\n", b"MN\r\n") == b"MN\r\n", "who was there goes on")


def plain_beside(folder, pair):
    with Server(PROGRAM, folder / "both.hf", *secured(*pair), "-l", "127.0.0.1,notls:127.0.0.1") as server:
        plain = re.search(r", ([\d.]+):(\d+)", server.ready_line.split("listening on")[1].split(", pool")[0])
        address = plain.group(1), int(plain.group(2))
        check(talk(address, b"set k 0 0 1\r\n1\r\n", False) == b"STORED\r\n", "notls")
        with connect(server.address, client_context(pair[0])) as client:
            check(b"\r\n1\r\n" in ask(client, b"get k\r\n", b"END\r\n"), "beside it")
    with Server(PROGRAM, folder / "none.hf") as server:
        check(talk(server.address, b"refresh_certs\r\n", False) == b"Error TLS not enabled\r\n", "refresh_certs without TLS")


def hostile(folder, pair):
    """A client that stalls in the handshake, or in a record, is closed; garbage of every kind
    changes nothing, and takes no connection for long."""
    context, chance = client_context(pair[0]), random.Random(7)
    with Server(PROGRAM, folder / "hostile.hf", *secured(*pair), "--request-timeout", "1") as server:
        hello = bytes.fromhex("1603010200010001fc0303") + chance.randbytes(200)
        idle = [socket.create_connection(server.address) for _ in range(20)]
        for number, client in enumerate(idle):
            client.sendall(hello[:number * 10])
        for number in range(300):
            with contextlib.suppress(OSError), socket.create_connection(server.address) as client:
                client.sendall((hello[:chance.randrange(40)] if number % 2 else b"") + chance.randbytes(chance.randrange(3000)))
        for number in range(100):  # garbage, or a cut, behind a good handshake
            client = connect(server.address, context)
            ask(client, b"mn\r\n", b"MN\r\n")
            raw = socket.socket(fileno=os.dup(client.fileno()))
            with contextlib.suppress(OSError):
                raw.sendall(b"set k 0 0 1\r\n1\r\n" if number % 2 else chance.randbytes(500))
            raw.close()
            client.detach() if number % 3 else client.close()
        stalled = [connect(server.address, context) for _ in range(5)]
        for client in stalled:
            ask(client, b"mn\r\n", b"MN\r\n")
            os.write(client.fileno(), b"\x17\x03\x03\x01\x00" + bytes(100))  # of a record of 256 bytes
        deadline = time.monotonic() + 20
        while int(stats(server.address, context)[b"curr_connections"]) > 40 and time.monotonic() < deadline:
            time.sleep(0.2)
        for client in stalled:
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                check(not client.recv(10), "an answer to half a record")
            client.close()
        for client in idle:
            client.settimeout(30)
            with contextlib.suppress(ConnectionError):
                while client.recv(4096):  # an alert, and the end
                    pass
            client.close()
        with connect(server.address, context) as client:
            check(ask(client, b"get k\r\n", b"END\r\n") == b"END\r\n", "garbage was executed")
        check(server.stop() == 0, "a clean stop")


def refusals(folder, pair):
    other = make_certificate(folder.path, "other")
    pool = folder / "refused.hf"
    for what, options, says in (
            ("no certificate", ["-Z"], "ssl_chain_cert"), ("no such file", secured(folder / "none", pair[1]), "No such file"),
            ("no such key", secured(pair[0], folder / "none"), "ssl_key"), ("another's key", secured(pair[0], other[1]), "key"),
            ("no certificate in it", secured(pair[1], pair[1]), "certificate"),
            ("verify mode", secured(*pair, "ssl_verify_mode=4"), "ssl_verify_mode"),
            ("version", secured(*pair, "ssl_min_version=4"), "ssl_min_version"),
            ("ciphers", secured(*pair, "ssl_ciphers=rot13"), "rot13"), ("ca", secured(*pair, "ssl_ca_cert=/none"), "/none"),
            ("no TCP", [*secured(*pair), "-p", "0", "-s", folder / "socket"], "TCP"),
            ("notls alone", ["-l", "notls:127.0.0.1"], "notls")):
        ran = subprocess.run([PROGRAM, "--pool", pool, "-u", "root", "-p", "-1", *options], capture_output=True, text=True,
                             timeout=60)
        check(ran.returncode in (1, 2) and ran.stderr.count("\n") == 1 and says in ran.stderr, f"{what}: {ran}")
        check(not os.path.exists(pool), f"{what}: a refused option made a pool")


def names_as_memcached(folder, pair):
    if shutil.which("memcached") is None:
        return
    context = client_context(pair[0])
    with Memcached(*secured(*pair, "ssl_session_cache")) as real, \
            Server(PROGRAM, folder / "names.hf", *secured(*pair, "ssl_session_cache")) as server:
        for words in (b"", b" settings"):
            theirs, ours = (stats(at, context, words) for at in (real.address, server.address))
            missing = [name for name in theirs if b"ssl" in name or b"cert" in name if name not in ours]
            check(not missing, f"stats{words}: {missing}")
        check({name: told for name, told in theirs.items() if b"ssl" in name}.items() <= ours.items(),
              f"{theirs} {ours}")


def main():
    with Folder() as folder:
        ca = make_certificate(folder.path, "ca")
        pair = make_certificate(folder.path, "server", issuer=ca)
        alone = make_certificate(folder.path, "alone")
        survives_a_kill(folder, alone)
        records_and_replies_of_any_size(folder, alone)
        watched(folder, alone)
        only_whom_the_ca_knows(folder, ca, pair)
        what_is_negotiated(folder, alone)
        another_certificate(folder, ca)
        plain_beside(folder, alone)
        hostile(folder, alone)
        refusals(folder, alone)
        names_as_memcached(folder, alone)


main()
