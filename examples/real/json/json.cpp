// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A document of JSON for Modern C++ (nlohmann) in a pool: its own template arguments give it
// strings, maps and vectors with the pool's allocator. No line of it is changed. Its exceptions
// carry volatile strings, so its own macros end the process instead.
#define NAME "json"
#define LAYOUT "json/2"
#include "program.h"

#define JSON_THROW_USER(exception) __builtin_trap()
#define JSON_TRY_USER if (true)
#define JSON_CATCH_USER(exception) if (false)

#include <map>
#include <string>
#include <vector>

#ifdef HOLDFAST_UNINSTRUMENTED
template <class T> using pool_allocator = std::allocator<T>;
#else
#include <holdfast/allocator.hpp>
template <class T> using pool_allocator = hf::allocator<T>;
#endif

// It destroys a value by a vector of its own, whatever allocator the value has.
namespace std {
template <class T, class A = pool_allocator<T>> using pool_vector = vector<T, A>;
}
#define vector pool_vector
#include <nlohmann/json.hpp>
#undef vector

using text = std::basic_string<char, std::char_traits<char>, pool_allocator<char>>;
using document =
    nlohmann::basic_json<std::map, std::pool_vector, text, bool, long, unsigned long, double,
                         pool_allocator, nlohmann::adl_serializer, std::pool_vector<unsigned char>>;

struct root {
    unsigned long done;
    document* all;
};

HF_TXFUNC void begin(root* r) {
    r->all = new (hf_alloc(sizeof(document))) document(nlohmann::json::value_t::object);
}

// Changes an entry: a number, an array that grows and ends, a string.
template <class Document, class Text>
void change_entry(Document& all, const char* key, unsigned x, bool killed) {
    Document& entry = all[key];
    if (entry.is_null()) {
        entry["visits"] = 0UL;
        entry["seen"] = Document(nlohmann::json::value_t::array);
    }
    Document& visits = entry["visits"];
    visits = visits.template get<unsigned long>() + 1;
    if (killed) hf_crash_point("middle");
    Document& seen = entry["seen"];
    if (seen.size() >= 16) seen.erase(seen.begin(), seen.begin() + 8);
    seen.push_back(static_cast<unsigned long>(x));
    if (x % 4 == 0) entry["last"] = Text(key);
    if (x % 64 == 0) all.erase(Text(key));
}

// One of 1 000 keys for each step.
struct key {
    char text[48];
    explicit key(unsigned long step) {
        char made[sizeof text]; // as a section must know that snprintf writes to a local
        snprintf(made, sizeof made, "an entry of the document, %u", mixed(step) % 1000);
        memcpy(text, made, sizeof text);
    }
};

HF_TXFUNC void change(root* r, unsigned long step, int killed) {
    change_entry<document, text>(*r->all, key(step).text, mixed(step) >> 10, killed);
    ++r->done;
}

static void opened(root* r) {
    if (r->all == nullptr) begin(r);
}

static int same(root* r) {
    nlohmann::json model = nlohmann::json::object();
    for (unsigned long i = 0; i < r->done; ++i)
        change_entry<nlohmann::json, std::string>(model, key(i).text, mixed(i) >> 10, false);
    return std::string(r->all->dump().c_str()) == model.dump();
}

PROGRAM_MAIN
