// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stored bytes and arrays as buffers, without a copy: what memoryview(…) of Python reads is the
// pool's memory.
//
// (1) A buffer is of a snapshot, whose version stays as long as the buffer does: neither the
//     snapshot nor the pool is closed before (attachment::lend).
// (2) It cannot be written to.
#pragma once

#include "element.hpp"
#include "slots.hpp"
#include "structure.hpp"

#include <string>
#include <utility>
#include <vector>

namespace hf_python {

class value_view {
public:
    /// 'of' has 'in', a snapshot, in which 'stored' lies. Raises TypeError unless it is bytes or an
    /// array.
    value_view(nb::object of, attachment& in, hf_bytes stored) : of_(std::move(of)), in_(in) {
        const stored_bytes whole(stored);
        if (!whole.is_value()) {
            data_ = whole.data;
            place_.shape.assign(1, static_cast<Py_ssize_t>(whole.bytes));
        } else {
            place_ = array_in(whole.data, whole.bytes);
            data_ = whole.data + place_.begin;
        }
        Py_ssize_t step = static_cast<Py_ssize_t>(place_.element_bytes);
        strides_.resize(place_.shape.size());
        for (std::size_t i = strides_.size(); i-- > 0; step *= place_.shape[i]) strides_[i] = step;
        bytes_ = step;
    }
    value_view(const value_view&) = delete;

    static int get_buffer(PyObject* self, Py_buffer* to, int flags) noexcept {
        to->obj = nullptr;
        return guarded(-1, [&] {
            self_of<value_view>(self).fill(self, to, flags);
            return 0;
        });
    }
    static void release_buffer(PyObject* self, Py_buffer*) noexcept {
        nb::inst_ptr<value_view>(self)->in_.give_back();
    }

private:
    void fill(PyObject* self, Py_buffer* to, int flags) {
        if ((flags & PyBUF_WRITABLE) != 0)
            throw nb::buffer_error("a stored value cannot be written to: m.edit(key) changes it");
        const std::size_t dimensions = place_.shape.size();
        if (dimensions > 1 && (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS)
            throw nb::buffer_error("a stored array is in C's order, not in Fortran's");
        in_.lend();
        *to = {};
        to->buf = const_cast<char*>(data_);
        to->obj = nb::borrow(self).release().ptr();
        to->len = bytes_;
        to->itemsize = static_cast<Py_ssize_t>(place_.element_bytes);
        to->readonly = 1;
        to->ndim = static_cast<int>(dimensions);
        if ((flags & PyBUF_FORMAT) != 0) to->format = place_.format.data();
        if ((flags & PyBUF_ND) != 0) to->shape = place_.shape.data();
        if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) to->strides = strides_.data();
    }

    nb::object of_;
    attachment& in_;
    const char* data_ = nullptr;
    array_place place_;
    std::vector<Py_ssize_t> strides_;
    Py_ssize_t bytes_ = 0;
};

/// A memoryview of what 'look' finds in the snapshot.
template <class Calls, class Look> nb::object viewed(snapshot<Calls>& of, Look&& look) {
    const nb::object made =
        nb::cast(new value_view(nb::find(of), of, of.read(look)), nb::rv_policy::take_ownership);
    PyObject* const view = PyMemoryView_FromObject(made.ptr());
    if (view == nullptr) throw nb::python_error();
    return nb::steal(view);
}

inline void bind_view(nb::module_& to) {
    static PyType_Slot slots[] = {slot(Py_bf_getbuffer, &value_view::get_buffer),
                                  slot(Py_bf_releasebuffer, &value_view::release_buffer),
                                  {0, nullptr}};
    nb::class_<value_view>(to, "View", nb::type_slots(slots));
}

} // namespace hf_python
