#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What the packages do: a program is written, killed halfway through a push, and has its list whole again; the server is killed, and
# has its item again. Ends with an error where it does not.
set -eu
work=$(mktemp -d)
cd "$work"

expect() { [ "$1" = "$2" ] || { echo "expected: $2"; echo "found:    $1"; exit 1; }; }

cp /usr/share/doc/holdfast/examples/numbers.cpp .
holdfast-clang++ -std=c++20 -O2 --holdfast-engine=clobber numbers.cpp -o numbers $(pkg-config --cflags --libs holdfast)
expect "$(./numbers)" "1 numbers, sum 1"
HOLDFAST_CRASH_AT=half-pushed ./numbers && exit 1 # it is killed
expect "$(./numbers)" "3 numbers, sum 6"
expect "$(holdfast verify --deep numbers.hf)" "numbers.hf: good: 4 blocks, 80 bytes; 4 verified"
echo "numbers: killed halfway through a push, whole again: 3 numbers, sum 6"

# Starts the server for few clients, as a container may open few files; asks one thing, shows the first line of the answer, kills it.
asked() {
    : >kv.out
    holdfast-kv -u root --pool kv.hf -s kv.sock -t 2 -c 64 >>kv.out &
    until grep -q listening kv.out; do kill -0 $!; sleep 0.1; done
    perl -MIO::Socket::UNIX -e '$server = IO::Socket::UNIX->new("kv.sock") or die; print $server "$ARGV[0]\r\n"; print scalar <$server>' \
        "$1" | tr -d '\r'
    kill -9 $!
    wait $! 2>/dev/null || true
}
expect "$(asked "$(printf 'set key 0 0 5\r\nvalue')")" STORED
expect "$(asked 'get key')" "VALUE key 0 5"
echo "holdfast-kv: killed, and it has the item that it had acknowledged"
rm -r "$work"
