# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: holdfast-kv answers as memcached 1.6 does, byte for byte.

Method: the same bytes, good and bad, go to both servers, each conversation on fresh connections and
in one piece as well as byte by byte where short; what comes back until the servers hang up must be
the same. CAS numbers differ by design and are replaced before the comparison.
"""

import re
import sys

from kv_testing import Folder, Memcached, Server, check, needs, talk

K250, K251 = b"k" * 250, b"k" * 251

CONVERSATIONS = [
    b"set a 1 0 3\r\nabc\r\nget a\r\ngets a\r\nget a b a\r\n",
    b"set a 0 0 3\nabc\r\nget a\n",
    b"set a 4294967295 0 0\r\n\r\nget a\r\n",
    b"set a 4294967296 0 1\r\nx\r\nget a\r\n", b"set a 18446744073709551615 0 1\r\nx\r\nget a\r\n",
    b"set a 18446744073709551616 0 1\r\nx\r\nget a\r\n",
    b"set a -1 0 1\r\nx\r\n", b"set a x 0 1\r\n", b"set a 0 x 1\r\n", b"set a 0 0 x\r\n",
    b"set a 0 0 -1\r\n", b"set a 0 0\r\n", b"set a 0 0 1 2 3\r\n", b"set\r\n", b"set a\r\n",
    b"set a 0 0 3\r\nabcd\r\nget a\r\n", b"set a 0 0 3\r\nabcXXget a\r\n",
    b"set a 0 0 3 noreply\r\nabc\r\nget a\r\n", b"set a 0 0 3 norepl\r\nabc\r\nget a\r\n",
    b"set a 0 0 x noreply\r\nget a\r\n",
    b"set " + K250 + b" 0 0 1\r\nx\r\nget " + K250 + b"\r\n",
    b"set " + K251 + b" 0 0 1\r\n", b"get " + K251 + b"\r\n", b"get a " + K251 + b" b\r\n",
    b"delete " + K251 + b"\r\n", b"incr " + K251 + b" 1\r\n", b"touch " + K251 + b" 1\r\n",
    b"gat 0 " + K251 + b"\r\n",
    b"add a 0 0 1\r\nx\r\nadd a 0 0 1\r\ny\r\nget a\r\n",
    b"replace a 0 0 1\r\nx\r\nset a 5 0 1\r\nx\r\nreplace a 6 0 2\r\nyy\r\nget a\r\n",
    b"append a 0 0 1\r\nx\r\nset a 5 0 1\r\nx\r\nappend a 9 0 2\r\nyz\r\nprepend a 9 0 2\r\nvw\r\nget a\r\n",
    b"cas a 0 0 1 1\r\nx\r\nset a 0 0 1\r\nx\r\ncas a 0 0 1 99999999999\r\ny\r\nget a\r\n",
    b"cas a 0 0 1\r\n", b"cas a 0 0 1 x\r\n", b"cas a 0 0 1 1 noreply\r\nx\r\nget a\r\n",
    b"incr a 1\r\nset a 0 0 2\r\n10\r\nincr a 1\r\nincr a 989\r\nget a\r\ndecr a 999\r\nget a\r\ndecr a 5\r\nget a\r\n",
    b"set a 0 0 20\r\n18446744073709551615\r\nincr a 1\r\nget a\r\n",
    b"set a 0 0 1\r\nx\r\nincr a 1\r\ndecr a 1\r\nset a 0 0 0\r\n\r\nincr a 1\r\n",
    b"set a 0 0 2\r\n-1\r\nincr a 1\r\n", b"set a 0 0 3\r\n 12\r\nincr a 1\r\nget a\r\n",
    b"set a 0 0 3\r\n12 \r\nincr a 1\r\nget a\r\n", b"set a 0 0 3\r\n12x\r\nincr a 1\r\nget a\r\n",
    b"set a 0 0 21\r\n184467440737095516160\r\nincr a 1\r\n",
    b"set a 0 0 1\r\n5\r\nincr a x\r\nincr a -1\r\nincr a\r\nincr a 1 2 3\r\nincr a 1 noreply\r\nget a\r\n",
    b"set a 7 0 1\r\n9\r\nincr a 1\r\nget a\r\n",
    b"delete a\r\nset a 0 0 1\r\nx\r\ndelete a\r\nget a\r\ndelete a 0\r\ndelete a 1\r\ndelete a 0 noreply\r\ndelete a x y\r\ndelete\r\ndelete a noreply\r\nget a\r\n",
    b"touch a 1\r\nset a 0 0 1\r\nx\r\ntouch a 100\r\ntouch a x\r\ntouch a\r\ntouch a -1\r\nget a\r\n",
    b"set a 0 0 1\r\nx\r\ntouch a 100 noreply\r\nget a\r\n",
    b"gat 100 a\r\nset a 3 0 1\r\nx\r\ngat 100 a b\r\ngats 0 a\r\ngat x a\r\ngat 100\r\ngat\r\n",
    b"set a 0 -1 1\r\nx\r\nget a\r\n", b"set a 0 1 1\r\nx\r\nget a\r\n",
    b"set a 0 2592001 1\r\nx\r\nget a\r\n", b"set a 0 4000000000 1\r\nx\r\n",
    b"set a 0 2147483647 1\r\nx\r\nget a\r\n",
    b"flush_all\r\nset a 0 0 1\r\nx\r\nflush_all 0\r\nget a\r\nflush_all x\r\nflush_all noreply\r\nflush_all 0 noreply\r\nflush_all 1 2 3\r\nset a 0 0 1\r\nx\r\nflush_all 100\r\nget a\r\nflush_all -1\r\n",
    b"verbosity\r\nverbosity 0\r\nverbosity x\r\nverbosity 0 noreply\r\nverbosity 0 1 2\r\n",
    b"stats reset\r\nstats nonsense\r\n", b"stats extstore\r\nstats proxy\r\nstats hash\r\n", b"bget a\r\nset a 1 0 1\r\nx\r\nbget a b\r\nbget\r\n",
    b"stats sizes\r\nstats sizes_enable\r\nstats sizes_enable x\r\nstats sizes_disable\r\nstats sizes x\r\nstats sizes_disable noreply\r\n",
    b"verbosity 4294967296\r\nstats cachedump 4294967304 0\r\n",
    b"stats cachedump\r\nstats cachedump 1\r\nstats cachedump x 1\r\nstats cachedump 1 x\r\nstats cachedump 64 1\r\n"
    b"stats cachedump 200 0\r\nstats cachedump 63 0\r\nstats cachedump 0 0\r\nstats cachedump -1 0\r\n",
    b"stats reset\r\nstats detail\r\nstats detail x\r\nstats detail dump\r\nset p:a 0 0 1\r\nx\r\nstats detail dump\r\nstats detail on\r\n"
    b"set p:a 0 0 1\r\nx\r\nget p:a p:b p\r\ngat 0 p:a\r\nadd p:a 0 0 1\r\nx\r\ntouch p:a 0\r\nincr p:a 1\r\ndelete p:a\r\ndelete p:a\r\n"
    b"delete p\r\nstats detail dump\r\nstats reset\r\nstats detail dump\r\nget p:a:b\r\nstats detail off\r\nget p:a\r\nstats detail dump\r\nstats reset\r\n",
    b"\r\n", b"\n", b" \r\n", b"x\r\n", b"get\r\n", b"gets\r\n", b"get \r\n", b"GET a\r\n", b"gett a\r\n",
    b"  get  a \r\n", b"get a\rb\r\n", b"set a 0 0 1\r\nx\r\nget a\x00b\r\n",
    b"nonsense\r\n", b"nonsense with words\r\n", b"mn\r\n", b"GET / HTTP/1.0\r\n\r\n",
    b"get " + b" ".join(b"key%d" % i for i in range(1000)) + b"\r\n",
    b"get " + b"y" * 3000,
    b"set " + b"y" * 3000 + b" 0 0 1\r\n",
    b"set a 0 0 1048576\r\n" + b"v" * 1048576 + b"\r\nget a\r\n",
    b"set a 0 0 1\r\nx\r\nset a 0 0 2000000\r\n" + b"v" * 2000000 + b"\r\nget a\r\n",
    b"set a 0 0 2000000 noreply\r\n" + b"v" * 2000000 + b"\r\nget a\r\n",
    b"set a 0 0 1000000\r\n" + bytes(range(256)) * 3906 + b"v" * 64 + b"\r\nget a\r\n",
    b"set a 0 0 1\r\nx\r\n" + b"get a\r\n" * 5000,
    b"set a 0 0 1\r\nx\r\nquit\r\nget a\r\n",
]

# The answers of a memcached without the machinery that is missing here.
WITHOUT = ("-o", "no_slab_reassign,no_lru_crawler,no_lru_maintainer")
OF_MACHINERY = [
    *(b"slabs %s\r\n" % words for words in (
        b"", b"x", b"reassign", b"reassign 1", b"reassign 1 2", b"reassign -1 300", b"reassign x y", b"reassign 1 2 3", b"reassign 1 2 noreply",
        b"reassign 1 noreply", b"automove", b"automove 0", b"automove 1", b"automove 2", b"automove 3", b"automove 4294967296", b"automove -1",
        b"automove x", b"automove 1x", b"automove +1", b"automove 1 x", b"automove 1 x y", b"automove 0 noreply", b"automove x noreply",
        b"automove 9 noreply", b"automove noreply", b"automove ratio", b"automove ratio noreply", b"automove ratio 0.8", b"automove ratio -1e3 x",
        b"automove ratio .5noreply", b"automove ratio 1e999", b"automove ratio x", b"automove ratio 0x1p3", b"automove ratio nan", b"automove ratio 0." + b"1" * 300,
        b"automove ratio 0.8 noreply", b"automove ratio x noreply", b"automove 1 2 3 4 5 6 7 8 noreply", b"automove 1 2 3 4 5 noreply 6 7 8")),
    *(b"lru %s\r\n" % words for words in (
        b"", b"x", b"noreply", b"tune", b"tune 10 25 0.1", b"tune 10 25 0.1 2.0", b"tune 10 25 0.1 2.0 x", b"tune 10 25 0.1 2.0 noreply", b"tune 50 31 1 1",
        b"tune 50 30 1 1", b"tune 50 30 0 1", b"tune 50 30 1 -1", b"tune 50 30 nan 1", b"tune x 30 1 1", b"tune 30 -1 1 1", b"tune 30 30 x 1",
        b"tune 50 40 1 1 noreply", b"tune 4294967295 1 1 1", b"mode", b"mode flat", b"mode segmented", b"mode flat noreply", b"temp_ttl 60", b"temp_ttl -1")),
    *(b"lru_crawler %s\r\n" % words for words in (
        b"crawl", b"crawl all", b"crawl 1,2", b"crawl x", b"crawl 1 noreply", b"tocrawl", b"tocrawl 5", b"tocrawl x", b"tocrawl -1", b"tocrawl 5 noreply",
        b"sleep", b"sleep 100", b"sleep 1000000", b"sleep 1000001", b"sleep x", b"sleep 5 noreply", b"disable", b"disable noreply", b"x", b"noreply")),
]


def comparable(answer):
    return re.sub(rb"(VALUE \S+ \d+ \d+) \d+\r\n", rb"\1 CAS\r\n", answer)


def answer_of(address, request, bytewise):
    """From a clean table, with numbers that do not depend on earlier conversations."""
    talk(address, b"delete a\r\ndelete " + K250 + b"\r\n", False)
    return comparable(talk(address, request, bytewise))


def main():
    needs("memcached")
    different = 0
    with Memcached() as whole, Memcached(*WITHOUT) as bare, Folder() as folder, \
            Server(sys.argv[1], folder / "pool.hf") as server:
        for request, memcached in [(r, whole) for r in CONVERSATIONS] + [(r + b"mn\r\n", bare) for r in OF_MACHINERY]:
            for bytewise in (False, True) if len(request) < 200 else (False,):
                ours = answer_of(server.address, request, bytewise)
                # memcached's answers vary: a number that an earlier response still holds is
                # made anew by 'decr', shorter, where it is otherwise padded in place.
                theirs = [answer_of(memcached.address, request, bytewise)]
                while theirs[-1] != ours and len(theirs) < 10:
                    theirs.append(answer_of(memcached.address, request, bytewise))
                if theirs[-1] == ours:
                    continue
                different += 1
                print(f"to {request[:120]!r}{' bytewise' if bytewise else ''}\n"
                      f"  memcached   {theirs[0][:300]!r}\n  holdfast-kv {ours[:300]!r}")
        # A crawler that runs already gets the same answer.
        check(talk(server.address, b"lru_crawler enable\r\n", False) == talk(whole.address, b"lru_crawler enable\r\n", False) ==
              b"ERROR failed to start lru crawler thread\r\n", "no crawler can be started")
        talk(server.address, b"stats sizes_enable\r\nset a 0 0 1\r\nx\r\nset b 0 0 1000\r\n" + b"v" * 1000 + b"\r\n", False)
        sizes = talk(server.address, b"stats sizes\r\nstats sizes_disable\r\n", False)
        check(re.fullmatch(rb"(STAT \d+ [1-9]\d*\r\n)*STAT 64 [1-9]\d*\r\nSTAT 2048 [1-9]\d*\r\nEND\r\nSTAT sizes_status disabled\r\n", sizes),
              f"sizes: {sizes}")
        check(server.process.poll() is None, "the server lives")
    print(f"{len(CONVERSATIONS) + len(OF_MACHINERY)} conversations, {different} answered differently")
    check(different == 0, "same answers")


main()
