// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device.hpp"

#include <algorithm>
#include <cstring>

namespace hf::power_test {

void device::take(const file_event& e) {
    file& f = files_[e.inode];
    if (f.sizes.empty()) f.sizes = {0};
    switch (e.what) {
    case file_event::write:
        for (std::uint64_t done = 0; done < e.bytes.size();) {
            const std::uint64_t at = e.at + done, number = at / sector_bytes_,
                                in = at % sector_bytes_;
            const std::uint64_t count = std::min(sector_bytes_ - in, e.bytes.size() - done);
            auto& versions = f.sectors[number];
            if (versions.empty()) {
                content now(sector_bytes_, 0);
                const std::uint64_t first = number * sector_bytes_;
                if (first < f.bytes.size())
                    std::memcpy(now.data(), f.bytes.data() + first,
                                std::min(sector_bytes_, f.bytes.size() - first));
                versions.push_back(now);
            }
            content next = versions.back();
            std::memcpy(next.data() + in, e.bytes.data() + done, count);
            versions.push_back(std::move(next));
            done += count;
        }
        f.size = std::max<std::uint64_t>(f.size, e.at + e.bytes.size());
        f.sizes.push_back(f.size);
        break;
    case file_event::resize:
        f.size = e.at;
        f.sizes.push_back(f.size);
        break;
    case file_event::sync:
        f.bytes.resize(f.size);
        for (const auto& [number, versions] : f.sectors)
            if (const std::uint64_t first = number * sector_bytes_; first < f.bytes.size())
                std::memcpy(f.bytes.data() + first, versions.back().data(),
                            std::min(sector_bytes_, f.bytes.size() - first));
        f.sectors.clear();
        f.sizes = {f.size};
        break;
    case file_event::link:
    case file_event::unlink: namings_.push_back({e.name, e.inode}); break;
    case file_event::sync_directory:
        for (const naming& n : namings_) {
            named_.erase(n.name);
            if (n.inode != 0) named_[n.name] = n.inode;
        }
        namings_.clear();
        break;
    }
}

names device::chosen(const std::function<std::size_t(std::size_t)>& choose) const {
    auto named = named_;
    for (const naming& n : namings_) {
        if (choose(2) == 0) continue;
        named.erase(n.name);
        if (n.inode != 0) named[n.name] = n.inode;
    }
    names there;
    for (const auto& [name, inode] : named) {
        const file& f = files_.at(inode);
        std::vector<std::uint64_t> sizes = f.sizes;
        sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
        content& bytes = there[name] = f.bytes;
        bytes.resize(sizes[choose(sizes.size())]);
        for (const auto& [number, versions] : f.sectors) {
            const content& version = versions[choose(versions.size())];
            if (const std::uint64_t first = number * sector_bytes_; first < bytes.size())
                std::memcpy(bytes.data() + first, version.data(),
                            std::min(sector_bytes_, bytes.size() - first));
        }
    }
    return there;
}

names device::seen() const {
    return chosen([](std::size_t base) { return base - 1; });
}

void device::visit(const std::function<void(const names&)>& visit) {
    // Tries every choice, counted like the digits of a number; gives up if they are too many.
    std::vector<std::size_t> digits, bases;
    std::size_t at = 0;
    const auto counted = [&](std::size_t base) {
        if (at == digits.size()) digits.push_back(0), bases.push_back(base);
        bases[at] = base;
        return digits[at++];
    };
    double states = 1;
    (void)chosen(counted);
    for (const std::size_t base : bases) states *= static_cast<double>(base);
    if (states <= states_max_) {
        for (;;) {
            at = 0;
            const names there = chosen(counted);
            digits.resize(at);
            bases.resize(at);
            visit(there);
            while (!digits.empty() && digits.back() + 1 == bases.back())
                digits.pop_back(), bases.pop_back();
            if (digits.empty()) return;
            ++digits.back();
        }
    }
    const std::size_t choices = bases.size();
    const auto with = [&](auto&& choose) {
        at = 0;
        visit(chosen([&](std::size_t base) { return choose(at++, base); }));
    };
    with([](std::size_t, std::size_t) { return std::size_t{0}; });
    with([](std::size_t, std::size_t base) { return base - 1; });
    for (unsigned n = 2; n < states_max_; ++n) {
        const std::size_t one = random_() % choices;
        switch (n % 4) {
        case 0:
            with([&](std::size_t i, std::size_t base) { return i == one ? 0 : base - 1; });
            break;
        case 1:
            with([&](std::size_t i, std::size_t base) { return i == one ? base - 1 : 0; });
            break;
        case 2:
            with([&](std::size_t i, std::size_t base) { return i < one ? base - 1 : 0; });
            break;
        case 3: with([&](std::size_t, std::size_t base) { return random_() % base; }); break;
        }
    }
}

} // namespace hf::power_test
