// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <persist/line_log.hpp>
#include <pool/fault_guard.hpp>
#include <pool/forks.hpp>
#include <pool/os_file.hpp>
#include <pool/relocation.hpp>
#include <power/log.hpp>

#include <pthread.h>

namespace hf::forks {

unsigned detail::counted = 0;

namespace {

void prepare() noexcept {
    power::log::hold_all();
    os_file::hold_table();
    fault_guard::hold_table();
}

void in_parent() noexcept {
    fault_guard::release_table();
    os_file::release_table();
    power::log::release_all();
}

void in_child() noexcept {
    ++detail::counted;
    os_file::close_inherited();
    forget_relocated_ranges();
    fault_guard::leave_watched_files();
    power::log::forget_inherited();
    persist::forget_group();
    in_parent();
}

[[maybe_unused]] const bool watching = (watch(), true);

} // namespace

void watch() noexcept {
    [[maybe_unused]] static const int watched = pthread_atfork(prepare, in_parent, in_child);
}

} // namespace hf::forks
