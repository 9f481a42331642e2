#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Proves that faults are injected into every system call of the library.

usage: imports.py NM WRAPPED LIBRARY...

Every C function that the static libraries import is either wrapped (WRAPPED: names, comma-separated)
or stands below, with the reason why no fault is injected into it.
"""
import subprocess
import sys

NO_SYSTEM_CALL = """
abort bcmp ceil exp2 free getenv log2 longjmp memchr memcmp memcpy memmove memset siglongjmp sigabbrev_np snprintf
stderr strcmp strerror strlen strncpy strnlen vsnprintf
frexp frexpf frexpl lgamma_r lgammaf_r lgammal_r modf modff modfl remquo remquof remquol sincos sincosf
sincosl strrchr strtol strcasecmp_l strncasecmp_l strtod_l strtof_l strtol_l strtold_l strtoll_l strtoul_l strtoull_l
isalnum_l isalpha_l isblank_l iscntrl_l isdigit_l isgraph_l islower_l isprint_l ispunct_l isspace_l
isupper_l isxdigit_l tolower_l toupper_l uselocale
__start_hf_uninstrumented __libc_single_threaded __isoc99_sscanf __isoc23_sscanf sigaddset wcslen wcsncpy wcsnlen wmemcpy
""".split()
RUNTIME = ("_Unwind_", "__cxa_", "_setjmp", "__sigsetjmp", "__gxx_personality_v0", "__dso_handle",
           "__errno_location", "__tls_get_addr", "__udivti3", "__stack_chk_fail", "_Z",
           "_GLOBAL_OFFSET_TABLE_" "__asan", "__ubsan", "__tsan", "__sanitizer")
CANNOT_FAIL = {
    "dladdr": "last words before abort()", "backtrace": "names the calls that wait long for a lock",
    "pthread_sigmask": "with valid arguments",
    "getpid": "", "gettid": "", "sysconf": "for the size of a page", "sched_yield": "", "clock_gettime": "of clocks that there are",
    "pthread_atfork": "when the program starts",
    "pthread_key_create": "without a key what a thread's last destructors make stays", "pthread_setspecific": "as pthread_key_create", "pthread_key_delete": "of a key that there is",
    "pthread_mutex_lock": "a plain mutex", "pthread_mutex_unlock": "a plain mutex",
    "sigaction": "with valid arguments", "signal": "with valid arguments",
    "timer_delete": "of a timer that was made",
    "fprintf": "last words before abort()", "write": "last words before the process dies",
    "kill": "its own end", "raise": "its own end", "_exit": "a copy's helper, done",
    "getppid": "", "nanosleep": "woken early, it asks again", "usleep": "woken early, it asks again",
    "opendir": "nobody is named, or nothing cleared away", "readdir": "as opendir", "closedir": "as opendir",
    "fopen": "as opendir", "fread": "as opendir", "fclose": "as opendir",
    "popen": "names the line of a store that ends the process", "fgets": "as popen", "pclose": "as popen",
    "mkdir": "of the register of addresses, without which a pool is made all the same", "openat": "as mkdir",
    "flock": "as mkdir", "renameat": "as mkdir", "unlinkat": "as mkdir", "dirfd": "as mkdir", "secure_getenv": "", "geteuid": "",
    "prctl": "asks for less: what it would allow is refused later, and said",
    "ptrace": "of copies, each outcome of which is said", "waitpid": "of copies, each outcome of which is said",
    "fchown": "of copies and new files: who owns it then is said", "fchmod": "as fchown",
    "ioctl": "asks which blocks are shared: where it cannot say, they stay so",
    "lseek": "of copies, for holes: where it cannot say, all is read",
    "posix_fadvise": "advice, of a file that could not be synced",
    "syncfs": "of a directory that cannot be opened; whether it could is said",
    "sync_file_range": "asks the disk to begin; the sync behind it says whether it could",
    "syscall": "clone and getdents64 of copies, whose failures are said; membarrier, which is asked for first",
    "newlocale": "of C, which is there already",
    "aligned_alloc": "as operator new, when a pool is opened",
    "malloc": "for a long text in a section: without memory the section ends the process, to be completed later",
    "mprotect": "takes a right away from what holds nothing; no promise rests on it",
}


def imported(nm, libraries):
    listing = subprocess.run([nm, "--undefined-only", "--format=just-symbols", *libraries],
                             check=True, capture_output=True, text=True).stdout
    return {line.strip() for line in listing.splitlines()
            if line.strip() and not line.rstrip().endswith(":")}


def main():
    nm, wrapped, libraries = sys.argv[1], set(sys.argv[2].split(",")), sys.argv[3:]
    known = wrapped | set(NO_SYSTEM_CALL) | set(CANNOT_FAIL)
    names = imported(nm, libraries)
    missing = sorted(name for name in names - known
                     if not name.startswith(RUNTIME) and not name.startswith("hf_"))
    unused = sorted(wrapped - names)
    for name in missing:
        print(f"imports: {name} is neither wrapped nor excused: no fault is injected into it")
    for name in unused:
        print(f"imports: {name} is wrapped, and the library does not call it")
    print(f"imports: {len(names)} functions, {len(wrapped)} wrapped, {len(missing)} missing")
    return 1 if missing or unused or not names else 0


if __name__ == "__main__":
    sys.exit(main())
