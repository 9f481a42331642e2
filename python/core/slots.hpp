// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that Python calls by a type's slots, without nanobind between: m[key] and its like take
// a third less so.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <new>

namespace hf_python {

namespace nb = nanobind;

/// What 'work' returns; or 'failed', with the Python exception of what it throws.
template <class Result, class Work> Result guarded(Result failed, Work&& work) noexcept {
    try {
        return work();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const nb::builtin_exception& error) {
        PyObject* const type = error.type() == nb::exception_type::type_error    ? PyExc_TypeError
                               : error.type() == nb::exception_type::value_error ? PyExc_ValueError
                               : error.type() == nb::exception_type::index_error ? PyExc_IndexError
                               : error.type() == nb::exception_type::key_error   ? PyExc_KeyError
                               : error.type() == nb::exception_type::buffer_error
                                   ? PyExc_BufferError
                                   : PyExc_RuntimeError;
        PyErr_SetString(type, error.what());
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return failed;
}

/// The C++ object in 'self', which Python has checked the type of.
template <class Of> Of& self_of(PyObject* self) {
    if (!nb::inst_ready(self))
        throw nb::type_error("expected an object that was made, found one whose __init__ did not "
                             "run or raised");
    return *nb::inst_ptr<Of>(self);
}

template <class Function> PyType_Slot slot(int number, Function* function) noexcept {
    return {number, reinterpret_cast<void*>(function)};
}

} // namespace hf_python
