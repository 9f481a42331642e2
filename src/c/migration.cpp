// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hf::migration for C: the function that migrates gets it, and the pool, behind pointers that end
// with it.
#include <c/pool_handle.hpp>

#include <holdfast/migration.hpp>

#include <new>
#include <string>

struct hf_migration {
    explicit hf_migration(hf::migration& which) : of(which), pool(which.in()) {}
    hf::result<void*> new_root(std::size_t bytes) { return of.new_root_bytes(bytes); }

    hf::migration& of;
    hf_pool pool;
};

hf::status hf::c::migrated(migration& of, hf_migrate_function run, void* context) {
    hf_migration face(of);
    fail(errc::ok, {}); // later messages are about the function's own calls
    const hf_status ended = run(&face, context);
    if (ended == HF_OK) return {};
    if (ended < HF_OK || ended > HF_NOT_INSTRUMENTED)
        return {errc::bad_argument,
                "bad_argument: hf_open_options::migrate: expected an hf_status, found " +
                    std::to_string(ended)};
    const std::string code(name(static_cast<errc>(ended)));
    std::string said = hf_error_text();
    if (said.find(code + ": ") == std::string::npos)
        said = code + ": hf_open_options::migrate ended with it";
    return {static_cast<errc>(ended), std::move(said)};
}

using hf::c::fail;

extern "C" {

hf_pool* hf_migration_pool(hf_migration* of) noexcept { return &of->pool; }
const char* hf_migration_from_layout(const hf_migration* of) noexcept {
    return of->of.from_layout().c_str();
}
uint64_t hf_migration_from_hash(const hf_migration* of) noexcept { return of->of.from_hash(); }

hf_status hf_migration_new_root(hf_migration* of, size_t bytes, void** root) noexcept try {
    *root = nullptr;
    if (bytes == 0)
        return fail(hf::errc::bad_argument,
                    "bad_argument: the root object: expected 1 byte at least, found 0");
    const hf::result<void*> found = of->new_root(bytes);
    if (!found) return fail(found.error().code(), found.error().what());
    *root = *found;
    return HF_OK;
} catch (const std::bad_alloc&) {
    return fail(hf::errc::io_error, {});
}

uint64_t* hf_migration_cursor(hf_migration* of) noexcept { return of->of.cursor(); }

hf_status hf_migration_refuse(hf_migration* of) noexcept try {
    return hf::c::told(of->of.refuse());
} catch (const std::bad_alloc&) {
    return fail(hf::errc::io_error, {});
}

void hf_migration_report(hf_migration* of, uint64_t done, uint64_t total) noexcept {
    of->of.report(done, total);
}

} // extern "C"
