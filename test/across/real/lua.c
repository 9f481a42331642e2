/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Lua as one file, with what a section may not do switched off by the library's own macros. A section calls a function of a
 * script: no line of the interpreter is changed. It would keep the address of a local (L->errorJmp) in its state, and leave
 * functions by longjmp; here that local is in the pool, and an error ends the process. The state has addresses of this
 * process, so nothing is opened again.
 */
#include "program.h"

#define LUAI_THROW(L, c) __builtin_trap()
#define LUAI_TRY(L, c, a) {a}
#define luai_jmpbuf int
static struct lua_longjmp* protecting(void);
#define lj (*protecting()) /* declared as a local, this is a function's declaration */

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
#undef l_sprintf
#define l_sprintf(to, room, format, value)                                              \
    __extension__({                                                                    \
        char text[64];                                                                 \
        const int length = snprintf(text, sizeof text, format, value);                 \
        memcpy(to, text, (size_t)length + 1);                                          \
        length;                                                                        \
    })
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
#undef lj

struct root {
    unsigned long done;
    lua_State* state;
    struct lua_longjmp jump;
};
static struct root* the_root;
static struct lua_longjmp* protecting(void) { return &the_root->jump; }

static void* memory(void* of, void* block, size_t had, size_t bytes) {
    if (bytes != 0) return pool_realloc(block, bytes);
    pool_free(block);
    return NULL;
}

HF_TXFUNC void change(struct root* r, unsigned x, int killed) {
    lua_getglobal(r->state, "change");
    lua_pushinteger(r->state, x);
    lua_call(r->state, 1, 0);
    if (killed) hf_crash_point("middle");
    r->done += 1;
}

static const char script[] = "local entries = {}\n"
                             "function change(x)\n"
                             "  local key = x % 1000\n"
                             "  local entry = entries[key]\n"
                             "  if entry == nil then entries[key] = {visits = 1, last = x}\n"
                             "  elseif x % 5 == 0 then entries[key] = nil\n"
                             "  else entry.visits = entry.visits + 1; entry.last = x end\n"
                             "end\n"
                             "function visits()\n"
                             "  local sum = 0\n"
                             "  for key, entry in next, entries do sum = sum + entry.visits * key end\n"
                             "  return sum\n"
                             "end\n";

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    struct root* r = the_root = (struct root*)root_of(argv[1], "lua/1", sizeof *r);
    const unsigned long steps = strtoul(argv[2], NULL, 10);
    lua_State* state = r->state = lua_newstate(memory, NULL);
    luaL_requiref(state, "_G", luaopen_base, 1);
    if (luaL_loadstring(state, script) != LUA_OK) return 3;
    lua_call(state, 0, 0);
    static unsigned long visits[1000]; /* a model */
    struct half_way half = half_of(0, steps);
    for (unsigned long i = 0; i < steps; ++i) {
        passes(&half, i);
        change(r, mixed(i), 0);
    }
    const double ns = ns_of(&half);
    long sum = 0;
    for (unsigned long i = 0; i < steps; ++i) {
        unsigned long* of = &visits[mixed(i) % 1000];
        *of = *of != 0 && mixed(i) % 5 == 0 ? 0 : *of + 1;
    }
    for (long key = 0; key < 1000; ++key) sum += key * (long)visits[key];
    lua_getglobal(state, "visits");
    lua_call(state, 0, 1);
    return verdict("lua", r->done, lua_tointeger(state, -1) == sum, ns);
}
