// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// holdfast._core: the C API as classes. What is Python about them is in holdfast/__init__.py.
#include "structure.hpp"
#include "view.hpp"

#include <new>

namespace hf_python {

nb::object cursor::next() {
    require_attached();
    hf_bytes element, value;
    const hf_status found = hf_mod_cursor_next(held_, &element, &value);
    if (found == HF_NOT_FOUND) throw nb::stop_iteration();
    check(found);
    switch (what_) {
    case gives::elements: return decode_key_ != nullptr ? decode_key_(element) : decoded(element);
    case gives::values: return decoded(value);
    case gives::pairs: break;
    }
    // Both out of the pool before Python code runs: then the cursor may be closed.
    const half_decoded second(value);
    if (decode_key_ != nullptr) {
        nb::object key = decode_key_(element); // copies it first
        return nb::make_tuple(key, second.whole(form::frozen));
    }
    const half_decoded first(element);
    return nb::make_tuple(first.whole(form::frozen), second.whole(form::frozen));
}

namespace {

void open(pool* to, const nb::bytes& path, const std::string& layout, int mode, int creation,
          std::uint64_t create_bytes, std::uint64_t max_bytes, unsigned max_threads, bool salvage,
          bool read_only, bool shared) {
    hf_open_options options{};
    options.layout = text_of("layout", layout).c_str();
    options.mode = mode;
    options.creation = creation;
    options.create_bytes = create_bytes;
    options.max_bytes = max_bytes;
    options.max_threads = max_threads;
    options.salvage = salvage;
    options.read_only = read_only;
    options.shared = shared;
    new (to) pool(std::string(path.c_str(), path.size()), options);
}

/// Calls 'call', which takes its time, without the interpreter's lock. Raises holdfast.Error.
template <class Call> void call_unlocked(pool& of, pool::work what, Call&& call) {
    hf_pool* const opened = of.await(what);
    hf_status ended;
    {
        const pool::absence away(of, what);
        ended = call(opened);
    }
    check(ended);
}

nb::tuple copy_to(pool& of, const nb::bytes& path) {
    const std::string to(path.c_str(), path.size());
    hf_copied copied{};
    call_unlocked(of, pool::work::look,
                  [&](hf_pool* from) { return hf_pool_copy_to(from, to.c_str(), &copied); });
    return nb::make_tuple(copied.bytes, copied.pause_ms);
}

/// It takes memory that a change could wait for.
std::uint64_t trim(pool& of) {
    std::uint64_t bytes = 0;
    call_unlocked(of, pool::work::change, [&](hf_pool* in) { return hf_pool_trim(in, &bytes); });
    return bytes;
}

nb::dict stats(pool& of) {
    hf_statistics s{};
    call_unlocked(of, pool::work::look, [&](hf_pool* in) { return hf_pool_statistics(in, &s); });
    nb::dict out;
    out["sections"] = s.sections;
    out["ordering_points"] = s.ordering_points;
    out["flushes"] = s.flushes;
    out["log_entries"] = s.log_entries;
    out["log_bytes"] = s.log_bytes;
    out["pm_bytes"] = s.pm_bytes;
    out["size_bytes"] = s.size_bytes;
    out["max_bytes"] = s.max_bytes;
    out["used_bytes"] = s.used_bytes;
    out["free_bytes"] = s.free_bytes;
    out["metadata_bytes"] = s.metadata_bytes;
    out["blocks"] = s.blocks;
    out["generation"] = s.generation;
    out["sections_recovered"] = s.sections_recovered;
    out["open_ms"] = s.open_ms;
    return out;
}

/// In mode power it waits for the disk.
void settle(pool& of) {
    call_unlocked(of, pool::work::look, [](hf_pool* in) { return hf_pool_settle(in), HF_OK; });
}

/// A change would wait for it, with the interpreter's lock.
void verify(pool& of) { call_unlocked(of, pool::work::change, &hf_mod_verify); }

void bind_pool(nb::module_& to) {
    nb::class_<pool>(to, "Pool", nb::is_weak_referenceable())
        .def("__init__", &open)
        .def("close", &pool::close)
        .def_prop_ro("closed", &pool::closed)
        .def("copy_to", &copy_to)
        .def("trim", &trim)
        .def("stats", &stats)
        .def("settle", &settle)
        .def("verify", &verify)
        .def_prop_ro("_in_transaction",
                     [](const pool& of) { return !of.closed() && of.joined() != nullptr; });
    nb::class_<transaction>(to, "Transaction")
        .def(nb::init<nb::object>())
        .def_prop_ro("number", &transaction::number)
        .def("commit", &transaction::commit)
        .def("close", &transaction::close);
}

nb::bytes encode_value(nb::handle value, bool hashable) {
    buffer made;
    encode(made, value, hashable ? as::old_key : as::value);
    return nb::bytes(made.data(), made.size());
}

nb::object decode_value(const nb::bytes& data) {
    return decode(data.c_str(), data.size(), 2, form::plain, data);
}

/// The object of stored bytes, to be changed.
nb::object thawed(const nb::bytes& stored) {
    return decoded({stored.c_str(), stored.size()}, form::plain);
}

void bind_values(nb::module_& to) {
    to.def("encode", &encode_value, nb::arg("value").none(), nb::arg("hashable") = false);
    to.def("decode", &decode_value);
    to.def("thawed", &thawed);
    to.def(
        "sorted_key",
        [](nb::handle key) {
            const sorted_key made(key);
            return nb::bytes(made.get().data, made.get().bytes);
        },
        nb::arg("key").none());
    to.def("sorted_key_of", [](const nb::bytes& stored) { return decoded_key(bytes_of(stored)); });
    to.def("set_frozen_types", &set_frozen_types);
    to.def("set_transactions_variable", &set_transactions_variable);
}

} // namespace

} // namespace hf_python

NB_MODULE(_core, to) {
    using namespace hf_python;
    nb::set_leak_warnings(false); // a pool may be open when the interpreter ends
    bind_pool(to);
    bind_values(to);
    nb::class_<cursor>(to, "Cursor")
        .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
        .def("__next__", &cursor::next);
    bind_view(to);
    bind_map(to);
    bind_sorted_map(to);
    bind_set(to);
    bind_vector(to);
    bind_stack_and_queue(to);
}
