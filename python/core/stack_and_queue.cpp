// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "structure.hpp"

namespace hf_python {

namespace {

template <class Source> nb::object next(const Source& of, const char* when_empty) {
    return of.read([&](const auto* from) {
        hf_bytes found;
        const hf_status ended = peek(from, &found);
        if (ended == HF_NOT_FOUND) throw nb::index_error(when_empty);
        check(ended);
        return decoded(found);
    });
}

template <class Calls> void push_one(structure<Calls>& to, nb::handle what) {
    const encoded with(what);
    to.change([&](auto* at) {
        check(to.commit(with.get().bytes, [&] { return push(at, with.get()); }));
    });
}

template <class Calls> void push_many(structure<Calls>& to, nb::iterable elements) {
    encoded_list all;
    for_each(elements, [&](nb::handle each) { all.add(each); });
    const std::vector<hf_bytes> with = all.get();
    to.change_many(all, with.size(),
                   [&](auto* at) { return push_all(at, with.data(), with.size()); });
}

/// Nothing if it is empty.
template <class Calls> nb::object take(structure<Calls>& from) {
    return taken(
        from,
        [](auto* at) {
            looked found;
            const hf_status status =
                peek(static_cast<const typename Calls::handle*>(at), &found.bytes);
            if (status != HF_NOT_FOUND) check(status);
            found.there = status == HF_OK;
            return found;
        },
        [](auto* at, looked&) { return pop(at, nullptr); });
}

} // namespace

void bind_stack_and_queue(nb::module_& to) {
    using stack = structure<stack_calls>;
    using queue = structure<queue_calls>;
    nb::class_<snapshot<stack_calls>> stack_version(to, "StackSnapshot");
    nb::class_<stack> bound_stack(to, "Stack");
    nb::class_<snapshot<queue_calls>> queue_version(to, "QueueSnapshot");
    nb::class_<queue> bound_queue(to, "Queue");
    bind_snapshot(stack_version);
    bind_snapshot(queue_version);
    bind_structure(bound_stack);
    bind_structure(bound_queue);

    stack_version.def(
        "peek", [](const snapshot<stack_calls>& of) { return next(of, "peek at an empty stack"); });
    bound_stack.def("peek", [](const stack& of) { return next(of, "peek at an empty stack"); });
    bound_stack.def("push", &push_one<stack_calls>, nb::arg("element").none());
    bound_stack.def("extend", &push_many<stack_calls>, nb::arg("elements"));
    bound_stack.def("pop", [](stack& from) {
        nb::object found = take(from);
        if (!found.is_valid()) throw nb::index_error("pop from an empty stack");
        return found;
    });

    queue_version.def(
        "peek", [](const snapshot<queue_calls>& of) { return next(of, "peek at an empty queue"); });
    bound_queue.def("peek", [](const queue& of) { return next(of, "peek at an empty queue"); });
    bound_queue.def("_put", &push_one<queue_calls>, nb::arg("element").none());
    bound_queue.def("_extend", &push_many<queue_calls>, nb::arg("elements"));
    bound_queue.def(
        "_take",
        [](queue& from, const nb::object& otherwise) {
            nb::object found = take(from);
            return found.is_valid() ? found : otherwise;
        },
        nb::arg("otherwise"));
}

} // namespace hf_python
