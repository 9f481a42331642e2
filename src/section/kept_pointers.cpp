// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/names.hpp>
#include <base/page.hpp>
#include <open/registry.hpp>
#include <section/kept_pointers.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>

namespace hf {
namespace {

bool is_mapped(std::uint64_t address) noexcept {
    const auto page = round_down(address, page_bytes());
    return ::msync(reinterpret_cast<void*>(page), 1, MS_ASYNC) == 0;
}

/// What is mapped at the address, in the words of the system: "[stack]", "[heap]", a file.
std::string name_of_mapping(std::uint64_t address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long long first = 0, end = 0;
        int name = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx %*s %*s %*s %*s %n", &first, &end, &name) < 2)
            continue;
        if (address < first || address >= end) continue;
        const std::string found = line.substr(std::min<std::size_t>(name, line.size()));
        return found.empty() ? "memory of this process" : found;
    }
    return "memory of this process";
}

} // namespace

void kept_pointers::look_through(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t end = offset + bytes;
    for (std::uint64_t at = round_down(offset, word_bytes); at < end; at += word_bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, of_.base() + at, sizeof word);
        look_at(at, word);
    }
}

void kept_pointers::look_through_blocks() const {
    for (block b : of_.blocks().taken()) look_through(b.offset, b.bytes);
}

void kept_pointers::ask(std::uint64_t offset, std::uint64_t word) const {
    if (registry::pool_of(reinterpret_cast<const void*>(word)) != nullptr) return;
    const pool_file& file = *of_.pool().file; // which may be mapped elsewhere
    if (word - file.canonical_base() <= file.shape().max_bytes) return;
    if (!is_mapped(word)) return;
    fatal("the section of '%s' (%s) is about to keep %#llx at byte %llu of the pool, which is an "
          "address in %s: it means nothing to the next process. Expected: addresses in a pool, or "
          "numbers. The section has not happened. Store what is pointed to in the pool; set what "
          "is marked HF_VOLATILE_OK outside of sections, anew after each open",
          readable_name(of_.function()->name), of_.function()->where,
          static_cast<unsigned long long>(word), static_cast<unsigned long long>(offset),
          name_of_mapping(word).c_str());
}

} // namespace hf
