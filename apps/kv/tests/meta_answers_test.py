# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: holdfast-kv answers meta commands as memcached 1.6.18 does, byte for byte.

Method: as same_answers_test.py. Besides written conversations there are drawn ones, from a fixed
seed: requests of the protocol's own words, right and wrong. CAS numbers, and the sizes and classes
in `me`, differ by design. They are replaced before the comparison, and requests name the CAS of an
item by a mark that is filled in for each server.

Not compared: what memcached itself answers differently from time to time. A number that an earlier reply still holds
is made anew by `ma`, without its marks and padding; the drawn conversations ask for no marks after `ma`.
"""

import base64
import random
import re
import sys

from kv_testing import Folder, Memcached, Server, check, needs, talk

LONG = b"k" * 251
CAS = b"<CAS>"  # that of the item `a`

WRITTEN = [
    b"mg\r\nmg a\r\nms\r\nms a\r\nms a x\r\nmd\r\nma\r\nme\r\nme a\r\nmx a\r\nm\r\nmn x\r\nmgx\r\n",
    b"ms a S2\r\nab\r\n", b"ms a -1\r\n", b"ms a 2147483647\r\n", b"ms a 2\nab\r\nmg a v\n",
    b"ms a 2\r\nab\r\nmg a v f s t c k\r\nmg a\r\nmg a h t l\r\nme a\r\n",
    b"ms a 2 T1000 F5 c k Oxy\r\nab\r\nmg a t f v\r\nme a\r\nms a 2 T1000 q\r\nab\r\nmn\r\n",
    b"mg zz k Oabc\r\nmg zz q\r\nmg zz v k q\r\nmg zz\r\nmn\r\n",
    b"ms a 2 X\r\nab\r\nmg a v\r\nms a 2 v v\r\nab\r\nms a 2 Fx\r\nab\r\nms a 2 Tx\r\nab\r\nms a 2 Cx\r\nab\r\n",
    b"ms a 2 MX\r\nab\r\nms a 2 M\r\nab\r\nms a 2 MXX\r\nab\r\nms a 2 Fx Tx\r\nab\r\nms a 2 Tx Fx\r\nab\r\n",
    b"ms a 2 Fx v v\r\nab\r\nms a 2 Tx X\r\nab\r\nms a 2 \xff\r\nab\r\nms a 2 b b\r\nab\r\n",
    b"ms Zm9v 2 b k\r\nab\r\nmg Zm9v b k v\r\nmg foo k v\r\nme foo\r\nme Zm9v b\r\nmd Zm9v b k\r\nmg Zm9v b k\r\n",
    b"ms Z 2 b k\r\nab\r\nms Zm9 2 b\r\nab\r\nmg Z b\r\nmd Z b\r\nma Z b\r\nme Z b\r\n",
    b"".join(b"mg %s b k\r\n" % key for key in (
        b"Zg==", b"Zm8=", b"Zm9v", b"Zm.9v", b"Zm=9v", b"====", b"Zm9vZg=A", b"Zg==Zm9v", b"\xffm9v", b"Z===", b"-_==",
        b"+/+/", base64.b64encode(bytes(range(3, 180))))),
    b"ms " + base64.b64encode(b"\0 \r\n\xff") + b" 2 b k\r\nab\r\nmg " + base64.b64encode(b"\0 \r\n\xff") + b" b k v\r\n"
    b"md " + base64.b64encode(b"\0 \r\n\xff") + b" b\r\n",
    b"mg a N30 t v\r\nmg a N30 t\r\nmg a v\r\nmd a I T40\r\nmg a t\r\nmg a t\r\nms a 1\r\nx\r\nmg a v\r\n",
    b"mg a t N300 k\r\nmd a\r\nmg a N300 T600 t\r\nmd a\r\nmg a T600 N300 t\r\nmg a t T60 \r\nmg a t\r\n",
    b"mg a N0 R100 t\r\nmd a\r\nms a 1 T50\r\nx\r\nmg a R20\r\nmg a R100\r\nmg a R100\r\nmg a\r\n",
    b"ms a 1 T50\r\nx\r\nmg a T500 R100\r\nms a 1 T50\r\nx\r\nmg a R100 T500\r\nmg a t\r\nmg a R0\r\nmg a R-1\r\n",
    b"ms Zm9v 1 b\r\nx\r\nmd foo\r\nmg Zm9v b k N0\r\nmg foo k\r\nmd foo\r\n",
    b"md a q\r\nmd a q k Oz\r\nms a 1\r\n5\r\nmd a k\r\nmd a k\r\nms a 1\r\nx\r\nmd a q\r\nmg a\r\n",
    b"ms a 1\r\n5\r\nma a\r\nget a\r\nma a v\r\nma a D10 v MD\r\nma a v D100 M- q\r\nma a v MI\r\nma a M+ v\r\nma a v D5\r\n",
    b"ms a 1 T100\r\n5\r\nma a t T500\r\nma a t\r\nma a T50 t\r\nma a N10 t\r\n",
    b"ma a\r\nma a q\r\nma a N100 J7 v t k Oq\r\nma a v\r\nma a C1\r\nma a C0\r\nma a v N0\r\n",
    b"ma a N100 q\r\nma a q\r\nmd a\r\nma a N0 T30 t\r\nma a t\r\nmd a\r\nma a T0 N30 t\r\nmd a\r\nma a t N30\r\n",
    b"ma a MX\r\nma a Dx\r\nma a Jx\r\nma a N5 Tx\r\nma a MII\r\nma a X\r\nmd a X\r\nmd a q q\r\nmd a Cx\r\n",
    b"ms a 1\r\nx\r\nma a\r\nms a 0\r\n\r\nma a\r\nms a 20\r\n18446744073709551615\r\nma a v\r\nma a v MD\r\n",
    b"ms a 21\r\n184467440737095516150\r\nma a v\r\nms a 3\r\n 12\r\nma a v\r\nget a\r\n",
    b"ms a 1\r\n1\r\nmg a O" + b"x" * 31 + b"\r\nmg a O" + b"x" * 32 + b"\r\nmg zq O" + b"x" * 32 + b"\r\n",
    b"ms a 1 O" + b"x" * 32 + b"\r\n1\r\nmd a O" + b"x" * 32 + b"\r\nma a O" + b"x" * 32 + b"\r\nmd a O" + b"x" * 31 + b"\r\n",
    b"ms a 1\r\n1\r\nmg a b c f h k l O q s t u v N R T P L\r\nmg a c f h k l O q s t u v N9 R9 T9 P L\r\nma a t\r\n",
    b"mg a 0 1 2 3 4 5 6 7 8 9 a b c d e f g h\r\nms a 1 0 1 2 3 4 5 6 7 8 9 a b c d e f g\r\n1\r\n",
    b"md a 0 1 2 3 4 5 6 7 8 9 a b c d e f g h\r\nma a 0 1 2 3 4 5 6 7 8 9 a b c d e f g h\r\nme a 1 2 3 4 5 6 7\r\n",
    b"mg " + LONG + b"\r\nms " + LONG + b" 1\r\n1\r\nmd " + LONG + b"\r\nma " + LONG + b"\r\nme " + LONG + b"\r\n",
    b"ms a 1 k c\r\n1\r\nms a 1 ME k c\r\n1\r\nms a 1 MA k c\r\n1\r\nms a 1 MP k\r\n2\r\nms a 1 MR\r\n1\r\nmg a v\r\n",
    b"ms a 1 MS q\r\n1\r\nms z 1 MA k\r\n1\r\nms z 1 MP q\r\n1\r\nms z 1 MR c\r\n1\r\nms z 1 C5 k Oo\r\n1\r\nms z 1 MA C5\r\n1\r\n",
    b"ms a 1\r\n1\r\nms a 1 C5 c k\r\n1\r\nms a 1 MA C5\r\n1\r\nms a 1 MR C5\r\n1\r\nms a 1 ME C5\r\n1\r\nms a 1 C0\r\n1\r\n",
    b"ms a 1 T100\r\n1\r\nms a 1 I C1 T500\r\n2\r\nmg a v t\r\nmg a v\r\nms a 1 I C1\r\n3\r\nmg a v\r\nmd a C1\r\nmd a C1 I\r\nma a C1\r\n",
    b"ms a 2\r\nabc\r\nmg a\r\n", b"ms a 2 q\r\nabc\r\nmg a\r\n", b"ms a 2 k Ox\r\nab", b"ms a 2 S5 s\r\nab\r\n",
    b"ms a 1\r\nx\r\nms a 2000000 q MA\r\n" + b"v" * 2000000 + b"\r\nmg a\r\n",
    b"ms a 1000000 c\r\n" + b"v" * 1000000 + b"\r\nmg a v s k\r\n",
    b"ms a 1 T-1\r\n1\r\nmg a\r\nms a 1 T0\r\n1\r\nmg a t\r\nmg a T-1 v\r\nmg a\r\nms a 1 I\r\nx\r\nmg a\r\n",
    b"ms a 1 S\r\nx\r\nms a 1 s f t v h l u P L\r\nx\r\nmd a s v t f\r\nms a 1\r\n1\r\nma a s f h l u k\r\n",
    b"ms a 1\r\nx\r\nmd a I T-1\r\nmg a\r\nms a 1\r\nx\r\nmd a I\r\nget a\r\nmg a s\r\nmg a s\r\nget a\r\ngat 0 a\r\nmg a\r\n",
    b"ms a 1\r\nx\r\nget a\r\nmg a h\r\nms a 1\r\nx\r\ntouch a 0\r\nmg a h\r\nms a 1\r\nx\r\nmg a u h\r\nmg a h\r\nmg a h\r\nme a\r\n",
    b"ms a 1 F4294967296\r\nx\r\nmg a f\r\nms a 1 F-1\r\nx\r\nms a 1 F4294967295\r\nx\r\nmg a f\r\nget a\r\n",
    b"ms a 1 k O1 c\r\nx\r\nmd a k O1\r\nmd a q k O2\r\nmd a O3 k q I\r\nmg a O k\r\nmg a E5\r\nms a 1 D5 J6 N7 R8\r\nx\r\n",
    b"set a 5 100 2\r\n12\r\nmg a f t v\r\nmg a T50\r\ngets a\r\nmd a I\r\nms a 1 MA\r\n3\r\nmg a v\r\nget a\r\nms a 1  q  \r\nx\r\nmn\r\n",
    b"ms a 1\r\nx\r\nmd a C" + CAS + b" I k\r\nmg a\r\nmd a C1\r\n", b"ms a 1\r\n5\r\nma a C" + CAS + b" v c\r\nma a C1\r\n",
    b"ms a 1\r\nx\r\nms a 1 C" + CAS + b" c\r\ny\r\nmg a v\r\n", b"ms a 1\r\nx\r\nms a 1 MA C" + CAS + b" c\r\ny\r\nmg a v\r\n",
    b"ms a 1\r\nx\r\nms a 1 C" + CAS + b" I\r\ny\r\nmg a v\r\n", b"ms a 1\r\nx\r\nmd a C" + CAS + b" q\r\nmg a v\r\n",
]


def drawn(seed, count):
    """Conversations of some requests each, mostly of a few keys and flags, seldom of anything."""
    draw = random.Random(seed)
    words = {b"mg": [b"v", b"k", b"s", b"f", b"t", b"c", b"q", b"O77", b"T100", b"T0", b"N200", b"R150", b"R50", b"u"],
             b"ms": [b"k", b"c", b"q", b"O77", b"T100", b"F9", b"ME", b"MA", b"MP", b"MR", b"MS", b"I", b"C1", b"C5"],
             b"md": [b"k", b"q", b"O77", b"I", b"T60", b"C1"],
             b"ma": [b"k", b"q", b"v", b"O77", b"D3", b"MD", b"M+", b"N100", b"J8", b"T40", b"t", b"c", b"C1"]}
    wrong = [b"X", b"Tq", b"b", b"M", b"MQQ", b"Dx", b"O" + b"y" * 40, b"k", b"v", b"\x80", b"C", b"F", b"9"]
    for _ in range(count):
        text = b""
        counted = False
        for _ in range(draw.randint(1, 6)):
            command = draw.choice([b"mg", b"mg", b"ms", b"ms", b"md", b"ma"])
            key = draw.choice([b"a", b"a", b"b"])
            flags = draw.sample(words[command], draw.randint(0, 4))
            if draw.random() < 0.1:
                flags.append(draw.choice(wrong))
            if counted and command == b"mg":
                flags = [f for f in flags if f not in (b"v", b"s")]
            if command == b"ma" or (counted and command == b"md"):
                if command == b"md":
                    flags = [f for f in flags if f != b"I"]
                counted = True
            value = draw.choice([b"7", b"12", b"x", b""])
            text += b" ".join([command, key] + ([b"%d" % len(value)] if command == b"ms" else []) + flags) + b"\r\n"
            if command == b"ms":
                text += value + b"\r\n"
        yield text


def comparable(answer):
    answer = re.sub(rb"(?m)^(VALUE \S+ \d+ \d+) \d+\r", rb"\1 CAS\r", answer)
    answer = re.sub(rb" c[1-9]\d*", b" cCAS", answer)
    return re.sub(rb"cas=\d+ (fetch=\w+) cls=\d+ size=\d+", rb"\1", answer)


def answer_of(address, request, bytewise):
    talk(address, b"delete a\r\ndelete b\r\ndelete z\r\ndelete foo\r\n", False)
    if CAS not in request:
        return comparable(talk(address, request, bytewise))
    # One connection for the first request, whose item's CAS the others name.
    head, rest = request[:request.index(b"\r\n", request.index(b"\r\n") + 2) + 2], None
    rest = request[len(head):]
    first = talk(address, head + b"gets a\r\n", False)
    cas = re.search(rb"VALUE a \d+ \d+ (\d+)", first).group(1)
    return comparable(first + talk(address, rest.replace(CAS, cas), bytewise))


def main():
    needs("memcached")
    conversations = WRITTEN + list(drawn(20261123, 300))
    different = 0
    with Memcached() as memcached, Folder() as folder, Server(sys.argv[1], folder / "pool.hf") as server:
        for request in conversations:
            for bytewise in (False, True) if request in WRITTEN and len(request) < 200 else (False,):
                # A second may begin between two requests, and 't' be one less.
                for _ in range(10):
                    ours, theirs = (answer_of(each.address, request, bytewise) for each in (server, memcached))
                    if ours == theirs:
                        break
                if ours != theirs:
                    different += 1
                    print(f"to {request[:300]!r}{' bytewise' if bytewise else ''}\n"
                          f"  memcached   {theirs[:500]!r}\n  holdfast-kv {ours[:500]!r}")
        check(server.process.poll() is None, "the server lives")
        check(server.stop() == 0, "a clean stop")
    requests = sum(len(re.findall(rb"(?m)^m[a-z]+ ?", text)) for text in conversations)
    print(f"{len(conversations)} conversations of {requests} meta requests, {different} answered differently")
    check(different == 0, "same answers")


main()
