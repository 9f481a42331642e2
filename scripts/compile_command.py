# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands of the build, for programs that run them again with something changed."""
import shlex


def plain(command):
    """The words of a compiler's command as one would type it: without what launches the compiler (ccache), and
    without the headers that are compiled once for all (cmake/HoldfastPrecompile.cmake)."""
    words = shlex.split(command)
    start = next(i for i, word in enumerate(words) if "clang" in word or "g++" in word or "gcc" in word)
    words, kept = words[start:], []
    while words:
        if words[:3:2] == ["-Xclang", "-Xclang"] and words[1] in ("-include-pch", "-include"):
            del words[:4]
        else:
            kept.append(words.pop(0))
    return kept
