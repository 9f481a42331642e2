/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * SQLite as one file, with what a section may not do switched off by options and macros. Nearly all
 * of its functions compile for sections; no program runs them yet.
 */
#define SQLITE_THREADSAFE 0
#define SQLITE_OMIT_LOAD_EXTENSION 1
#define SQLITE_OMIT_WAL 1
#define SQLITE_MAX_MMAP_SIZE 0
#define __has_extension(what) 0 /* no atomic operations */
#define volatile
#include "sqlite3.c"
