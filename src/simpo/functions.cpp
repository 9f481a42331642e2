// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <simpo/functions.hpp>

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <new>
#include <pthread.h>

namespace hf::simpo {
namespace {

struct functions {
    std::mutex lock;
    // Overloads have one identifier. The same inline function may also come from several libraries,
    // and one library may be unloaded.
    std::multimap<std::uint64_t, const detail::function*> by_id;
};
functions&
known() { // never destroyed: libraries may be unloaded after this one's static objects are gone
    static auto* const all = new functions;
    return *all;
}
// A child of fork() never finds it taken. No other lock is taken under it.
[[maybe_unused]] const int watching = pthread_atfork(
    [] { known().lock.lock(); }, [] { known().lock.unlock(); }, [] { known().lock.unlock(); });

/// Compares by name, so that libraries that each have the same type agree. A null counts as
/// unknown, not as different.
bool differ(const std::type_info* one, const std::type_info* other) {
    return one != nullptr && other != nullptr && *one != *other;
}

} // namespace

const detail::function* find_function(const object_head& of, const record_head& r,
                                      std::string* why) {
    functions& all = known();
    std::scoped_lock held{all.lock};
    const auto [first, end] = all.by_id.equal_range(r.function);
    const detail::function* other_class = nullptr; // has the function, and is another one
    for (auto it = first; it != end; ++it) {
        const detail::function& f = *it->second;
        if (f.schema != r.schema || f.version != r.version || f.words != r.words) continue;
        if (f.class_version == of.class_version && f.object_bytes == of.object_bytes) return &f;
        other_class = &f;
    }
    if (why == nullptr) return nullptr;
    if (first == end)
        *why = fmt::format("a function of identifier {:#x}, which this build does not have",
                           r.function);
    else if (other_class != nullptr)
        *why = fmt::format(
            "{}::{} of the class's version {}, {} bytes, and this build has version {}, {} bytes",
            other_class->class_text, other_class->text, of.class_version, of.object_bytes,
            other_class->class_version, other_class->object_bytes);
    else
        *why = fmt::format(
            "{}::{} of version {}, schema {:#x}, and this build has version {}, schema {:#x}",
            first->second->class_text, first->second->text, r.version, r.schema,
            first->second->version, first->second->schema);
    return nullptr;
}

void detail::add_function(const function* f) noexcept try {
    functions& all = known();
    std::scoped_lock held{all.lock};
    const auto [first, end] = all.by_id.equal_range(f->id);
    for (auto it = first; it != end; ++it) {
        const function& there = *it->second;
        if (there.schema != f->schema || there.version != f->version) continue;
        if (there.class_version != f->class_version) continue; // an older one, to be changed from
        if (differ(there.type, f->type))
            fatal(
                "the classes %s and %s both call themselves \"%s\", and both have a function %.*s "
                "of version %u: give each class, and each instantiation of a class template, a "
                "simpo_class of its own",
                there.type->name(), f->type->name(), f->class_text,
                static_cast<int>(f->text.size()), f->text.data(), f->version);
        if (differ(there.self, f->self))
            fatal("the class \"%s\" has two functions %.*s of version %u, of two bases or of one "
                  "template, which recovery would confuse (%s, %s): give one of them a "
                  "function_version of its own",
                  f->class_text, static_cast<int>(f->text.size()), f->text.data(), f->version,
                  there.self->name(), f->self->name());
    }
    all.by_id.emplace(f->id, f);
} catch (const std::bad_alloc&) {
    fatal("out of memory while a persistent class was registered");
}

void detail::remove_function(const function* f) noexcept {
    functions& all = known();
    std::scoped_lock held{all.lock};
    std::erase_if(all.by_id, [&](const auto& each) { return each.second == f; });
}

} // namespace hf::simpo
