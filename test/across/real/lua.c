/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Lua as one file, with what a section may not do switched off by the library's own macros. Sections do not run it:
 * its interpreter keeps the address of a local (L->errorJmp) in its state, and leaves functions by longjmp.
 */
/* The order is Lua's. */
/* clang-format off */
#define volatile
#define LUA_CORE
#define LUA_LIB
#define ltable_c
#define lvm_c
#include "luaconf.h"

#include "lprefix.h"

#undef LUAI_FUNC
#undef LUAI_DDEC
#undef LUAI_DDEF
#define LUAI_FUNC static
#define LUAI_DDEC(def)
#define LUAI_DDEF static
#undef lua_getlocaledecpoint
#define lua_getlocaledecpoint() '.'
#undef lua_pointer2str
#define lua_pointer2str(text, bytes, address) lua_integer2str(text, bytes, (lua_Integer)(address))
#define strcoll strcmp
#define LUA_USE_JUMPTABLE 0

#include "lzio.c"
#include "lctype.c"
#include "lopcodes.c"
#include "lmem.c"
#include "lundump.c"
#include "ldump.c"
#include "lstate.c"
#include "lgc.c"
#include "llex.c"
#include "lcode.c"
#include "lparser.c"
#include "ldebug.c"
#include "lfunc.c"
#include "lobject.c"
#include "ltm.c"
#include "lstring.c"
#include "ltable.c"
#include "ldo.c"
#include "lvm.c"
#include "lapi.c"
#include "lauxlib.c"
#include "lbaselib.c"
#include "lmathlib.c"
#include "lstrlib.c"
#include "ltablib.c"
#include "lutf8lib.c"
