// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lost_bytes.hpp"

#include <verify/examine.hpp>

#include <csignal>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

namespace hf::tools {
namespace {

volatile std::uintptr_t replaceable, replaceable_end; // addresses; none: both are 0
volatile std::sig_atomic_t replaced;
std::uintptr_t page_bytes;

bool replace_from(std::uintptr_t lost) noexcept {
    if (lost < replaceable || lost >= replaceable_end) return false;
    const std::uintptr_t page = lost - lost % page_bytes;
    if (::mmap(reinterpret_cast<void*>(page), replaceable_end - page, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    replaced = 1;
    return true;
}

} // namespace

void answer_lost_bytes() {
    page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* about, void*) {
        if (replace_from(reinterpret_cast<std::uintptr_t>(about->si_addr))) return;
        constexpr char text[] =
            "holdfast: the file was cut, or its disk failed, while it was read\n";
        (void)!::write(STDERR_FILENO, text, sizeof text - 1);
        ::_exit(static_cast<int>(verify::verdict::unreadable));
    };
    ::sigaction(SIGBUS, &action, nullptr);
}

lost_as_zeroes::lost_as_zeroes(std::span<const std::byte> mapping) noexcept {
    replaced = 0;
    replaceable = reinterpret_cast<std::uintptr_t>(mapping.data());
    replaceable_end = replaceable + mapping.size();
}

lost_as_zeroes::~lost_as_zeroes() {
    replaceable = 0;
    replaceable_end = 0;
}

bool lost_as_zeroes::any() const noexcept { return replaced != 0; }

} // namespace hf::tools
