// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program whose build forgot the plugin: its failure-atomic functions are plain functions, and no
// pool opens with an engine that it takes to protect them. With HOLDFAST_UNINSTRUMENTED it is
// meant.
#include "support.hpp"

#include <holdfast/author/mod/store.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/txfunc.hpp>
#include <holdfast/undo.hpp>

namespace language_test {
namespace {

HF_TXFUNC void count(long* value) noexcept { *value += 1; }
HF_TXFUNC inline void count_twice(long* value) noexcept { *value += 2; }
template <class T> HF_TXFUNC void add(T* value, T by) noexcept { *value += by; }

using plain = pools;

hf::errc open_with(const std::string& path, std::vector<hf::engine_ptr> engines) {
    hf::open_options o;
    o.layout = "language/1";
    o.create_bytes = o.max_bytes = 256 << 10;
    o.engines = std::move(engines);
    auto opened = hf::pool::open(path, o);
    return opened ? hf::errc::ok : opened.error().code();
}

TEST_F(plain, AForgottenPluginIsToldByOpen) {
    long value = 0;
    count(&value);
    count_twice(&value);
    add(&value, 3L);
    EXPECT_EQ(value, 6);
#if defined(HOLDFAST_UNINSTRUMENTED)
    const auto wanted = hf::errc::ok;
#else
    const auto wanted = hf::errc::not_instrumented;
#endif
    EXPECT_EQ(open_with(first, {hf::clobber::engine()}), wanted);
    EXPECT_EQ(open_with(second, {hf::undo::engine()}), wanted);
    ::unlink(first.c_str());
    EXPECT_EQ(open_with(first, {}), wanted); // the build's
    ::unlink(first.c_str());
    EXPECT_EQ(open_with(first, {hf::mod::engine()}), hf::errc::ok); // has no sections to protect
}

} // namespace
} // namespace language_test
