// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lua's whole state in a pool: tables, strings, functions, the garbage collector. A section calls a
// function of a script, which may raise and catch errors: as C++, Lua throws where C leaves by
// longjmp. No line of it is changed; macros switch off what a section may not do. The state holds
// addresses of functions and constants, so the program is linked at fixed addresses (-no-pie), and
// another build of it is refused.
#define NAME "lua"
#define LAYOUT "lua/2"
#define FIXED_ADDRESSES
#include "program.h"

#include <math.h>
#include <stdarg.h>
#include <time.h>

// The order is Lua's.
// clang-format off
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
// clang-format on

#define KEYS 1000u

struct root {
    unsigned long done;
    lua_State* state;
};

// [memory]
static void* memory(void* of, void* block, size_t had, size_t bytes) {
    if (bytes != 0) return pool_realloc(block, bytes);
    pool_free(block);
    return nullptr;
}
// [/memory]

static const char script[] = R"(
    local entries = {}
    function change(x)
        local key = "entry " .. x % 1000
        local entry = entries[key]
        if entry == nil then entries[key] = {visits = 1, last = x}
        elseif x % 5 == 0 then entries[key] = nil
        else entry.visits = entry.visits + 1; entry.last = x end
        if x % 7 == 0 then
            local fine, message = pcall(error, key)
            assert(not fine and message == key)
        end
    end
    function visits(key)
        local entry = entries["entry " .. key]
        return entry and entry.visits or 0
    end
)";

HF_TXFUNC void begin(root* r) {
    r->state = lua_newstate(memory, nullptr);
    luaL_requiref(r->state, "_G", luaopen_base, 1);
    if (luaL_loadstring(r->state, script) != LUA_OK) __builtin_trap();
    lua_call(r->state, 0, 0);
    lua_settop(r->state, 0);
}

// [change]
HF_TXFUNC void change(root* r, unsigned long step, int killed) {
    lua_getglobal(r->state, "change");
    lua_pushinteger(r->state, mixed(step));
    lua_call(r->state, 1, 0);
    if (killed) hf_crash_point("middle");
    r->done += 1;
}
// [/change]

// What the script says of a key. A section, as a call changes the state's stack.
HF_TXFUNC long visits(root* r, unsigned key) {
    lua_getglobal(r->state, "visits");
    lua_pushinteger(r->state, key);
    lua_call(r->state, 1, 1);
    const long many = lua_tointeger(r->state, -1);
    lua_settop(r->state, 0);
    return many;
}

static void opened(root* r) {
    if (r->state == nullptr) begin(r);
}

static int same(root* r) {
    static long model[KEYS];
    for (unsigned long i = 0; i < r->done; ++i) {
        long* const of = &model[mixed(i) % KEYS];
        *of = *of != 0 && mixed(i) % 5 == 0 ? 0 : *of + 1;
    }
    bool ok = true;
    for (unsigned key = 0; key < KEYS; ++key) ok = ok && visits(r, key) == model[key];
    return ok;
}

PROGRAM_MAIN
