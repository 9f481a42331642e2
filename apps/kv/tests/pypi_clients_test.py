# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: clients that Debian has no packages of work unchanged: python-binary-memcached (binary protocol, TLS) and
meta-memcache (meta commands: leases, stale items, counters). Method: both from PyPI in an environment of their own, once
more with the server killed in between. Skipped where PyPI cannot be reached.

pypi_clients_test.py PROGRAM FOLDER; FOLDER keeps the environment.
"""

import os
import random
import subprocess
import sys

PACKAGES = ("python-binary-memcached", "meta-memcache")

if "--inside" not in sys.argv:
    python = os.path.join(sys.argv[2], "bin/python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", sys.argv[2]], check=True)
    if subprocess.run([python, "-c", "import bmemcached, meta_memcache"], capture_output=True, check=False).returncode != 0:
        try:
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--retries", "1", *PACKAGES], timeout=120, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            print("skipped: PyPI cannot be reached")
            sys.exit(77)
    sys.exit(subprocess.run([python, "-B", *sys.argv, "--inside"], check=False).returncode)

import bmemcached  # noqa: E402
import meta_memcache as meta  # noqa: E402

from kv_testing import Folder, Server, check  # noqa: E402
from tls_tunnel import client_context, make_certificate  # noqa: E402

PROGRAM = sys.argv[1]


def binary(server, context=None):
    return bmemcached.Client(("{}:{}".format(*server.address),), socket_timeout=30, tls_context=context)


def use_binary(server, context=None):
    client = binary(server, context)
    check(client.set("a", "text") and client.get("a") == "text", "set, get")
    check(client.set("pickled", {"of": [1, 2.5, None]}) and client.get("pickled") == {"of": [1, 2.5, None]}, "flags")
    check(not client.add("a", "x") and client.add("b", "1") and client.replace("b", "2") and not client.replace("c", "x"), "add, replace")
    value, cas = client.gets("b")
    check(value == "2" and client.cas("b", "3", cas) and not client.cas("b", "4", cas), "cas")
    check(client.incr("n", 1, default=5) == 5 and client.incr("n", 3) == 8 and client.decr("n", 10) == 0, "incr, decr")
    check(client.set_multi({f"k{i}": f"v{i}" for i in range(1000)}) == [], "set_multi: quiet packets")
    check(len(client.get_multi([f"k{i}" for i in range(1200)])) == 1000, "get_multi")
    check(client.delete("a") and client.get("a") is None, "delete")
    big = random.Random(1).randbytes(900_000)
    check(client.set("big", big) and client.get("big") == big, "a large value")
    check(list(client.stats().values())[0]["threads"] == b"4", "stats")
    client.disconnect_all()


def meta_client(server):
    pools = meta.connection_pool_factory_builder()
    return meta.CacheClient.cache_client_from_servers([meta.ServerAddress(server.host, server.port)], pools)


def use_meta(server):
    client = meta_client(server)
    check(client.set("a", {"of": 1}, ttl=100) and client.get("a") == {"of": 1}, "set, get")
    check(client.set("a", 2, ttl=100, set_mode=meta.SetMode.ADD) is False, "add of what is there")
    value, cas = client.get_cas("a")
    check(value == {"of": 1}, "get_cas")
    if cas is not None:  # meta-memcache 4.3 knows CAS numbers of 32 bits alone (docs/guide/kv.md)
        check(client.set("a", 3, ttl=100, cas_token=cas) and not client.set("a", 4, ttl=100, cas_token=cas), "cas")
    client.set("a", 3, ttl=100)
    check(client.delta_initialize_and_get("counter", 1, initial_value=5, initial_ttl=100) == 5 and client.delta_and_get("counter", 7) == 12, "delta")
    check(client.touch("a", ttl=200) and client.get("a", touch_ttl=300) == 3, "touch")
    many = [f"m{i}" for i in range(500)]
    for key in many:
        client.set(key, key, ttl=100, no_reply=True)
    check(list(client.multi_get(many).values()) == many, "multi_get")
    lease = meta.LeasePolicy(ttl=30, miss_retries=1, miss_retry_wait=0.01)
    check(client.get_or_lease("leased", lease) is None and client.set("leased", 1, ttl=100), "a lease, won and used")
    check(client.get_or_lease("leased", lease) == 1, "what it was for")
    check(client.invalidate("leased", stale_policy=meta.StalePolicy(mark_stale_on_deletion_ttl=30)), "invalidate")
    check(client.get("leased", recache_policy=meta.RecachePolicy(ttl=30)) is None and client.get("leased") == 1, "stale: one renews it")
    check(client.delete("a") and client.get("a") is None, "delete")
    check(client.set("é with spaces" * 30, 1, ttl=100) and client.get("é with spaces" * 30) == 1, "a key in base64")


def main():
    with Folder() as folder:
        pool, pair = folder / "pool.hf", make_certificate(folder.path)
        with Server(PROGRAM, pool) as server:
            use_binary(server)
            use_meta(server)
            server.kill()
        with Server(PROGRAM, pool) as server:
            check(len(binary(server).get_multi([f"k{i}" for i in range(1000)])) == 1000, "after a kill")
            check(meta_client(server).delta_and_get("counter", 1) == 13, "after a kill")
        with Server(PROGRAM, folder / "tls.hf", "-Z", "-o", "ssl_chain_cert={},ssl_key={}".format(*pair)) as server:
            context = client_context(pair[0])
            context.check_hostname = False  # the client gives no name
            use_binary(server, context)


main()
