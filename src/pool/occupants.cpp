// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/occupants.hpp>
#include <pool/os_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>

namespace hf {
namespace {

/// A mapping of this process, as a line of /proc/self/maps has it.
struct mapping {
    std::uint64_t begin = 0;
    std::string name; // empty: memory without a file
};

mapping mapping_in(std::uint64_t base, std::uint64_t bytes) {
    const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                     std::fclose);
    char line[4096 + 128]; // a path, and what stands before it
    while (maps != nullptr && std::fgets(line, sizeof line, maps.get()) != nullptr) {
        std::uint64_t begin = 0, end = 0;
        int at = 0;
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &begin, &end, &at) < 2)
            continue;
        if (begin >= base + bytes || end <= base) continue;
        std::string name = line + at;
        if (!name.empty() && name.back() == '\n') name.pop_back();
        std::ranges::replace_if(name, [](char c) { return c < 0x20 || c == 0x7f; }, '?');
        return {begin, name};
    }
    return {};
}

} // namespace

std::string occupant_of(const std::string& path, std::uint64_t base, std::uint64_t bytes) {
    if (const std::string pool = os_file::pool_at(base, bytes); !pool.empty())
        return fmt::format(
            "the pool {} is there, which this process has open: close it first, or "
            "give one of the two an address of its own: holdfast rebase {}, or build "
            "the program relocatable and open with expert.relocate = if_taken "
            "(docs/internals/relocation.md)",
            pool, path);
    const mapping found = mapping_in(base, bytes);
    if (found.begin == 0) return "something is mapped there";
    return fmt::format("{} is mapped at {:#x}, where the system puts it by chance: start the "
                       "program again, or give the pool another address: holdfast rebase {}",
                       found.name.empty() ? "memory of this process" : found.name, found.begin,
                       path);
}

} // namespace hf
