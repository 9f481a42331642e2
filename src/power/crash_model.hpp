// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block device that fails, for tests: every write and sync is recorded, and at any point what the
// device may hold is enumerated.
//
// (1) The bytes that a file's last sync covered are there. Each sector written since may have any
//     of its versions, independently of the others: sectors are neither ordered nor whole writes.
// (2) A sector is old or new, never a mixture. The test decides its size: 512 bytes, or 4096.
#pragma once

#include <power/block_file.hpp>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace hf::power::test {

using bytes = std::vector<std::byte>;

/// What a pool's header says of its log.
struct known_log {
    std::uint64_t generation = 0, salt = 0;
};

/// One request to the device, in their order, and how much had been promised and reported by then.
struct device_event {
    enum kind : std::uint8_t { write, sync, header } what;
    std::size_t file;
    std::uint64_t at;
    bytes content;
    std::size_t promised; // states promised before it
    known_log log = {};   // of a header
};

struct recorded_device {
    std::vector<bytes> files;
    std::vector<device_event> events;
    std::size_t promised = 0;
    std::size_t fails_at = SIZE_MAX; // the number of the event that fails, as all do behind it
    bool half = true;                // a write that fails has written half

    bool fails() const { return events.size() >= fails_at; }
};

class device_file final : public block_file {
public:
    device_file(recorded_device& on, std::size_t file) : on_(&on), file_(file) {}
    status read(std::uint64_t at, void* to, std::size_t count) const override {
        const bytes& all = on_->files[file_];
        std::memset(to, 0, count);
        if (at < all.size())
            std::memcpy(to, all.data() + at, std::min<std::size_t>(count, all.size() - at));
        return {};
    }
    status write(std::uint64_t at, const void* from, std::size_t count) override {
        const bool fails = on_->fails();
        const auto* const first = static_cast<const std::byte*>(from);
        const std::size_t done = fails ? (on_->half ? count / 2 : 0) : count;
        std::memcpy(on_->files[file_].data() + at, from, done);
        on_->events.push_back(
            {device_event::write, file_, at, bytes(first, first + done), on_->promised});
        return fails ? status{errc::io_error, "the device fails"} : status{};
    }
    status sync() override {
        const bool fails = on_->fails();
        if (!fails) on_->events.push_back({device_event::sync, file_, 0, {}, on_->promised});
        return fails ? status{errc::io_error, "the device fails"} : status{};
    }

private:
    recorded_device* on_;
    std::size_t file_;
};

/// Calls 'visit(files, log, promised)' for what may be there after each event.
class failures {
public:
    failures(std::vector<bytes> before, const known_log& log, std::uint64_t sector_bytes)
        : durable_(std::move(before)), log_(log), sector_bytes_(sector_bytes) {}

    using visitor = std::function<void(const std::vector<bytes>&, const known_log&, std::size_t)>;
    void after_each(const std::vector<device_event>& events, std::size_t promised_at_end,
                    const visitor& visit) {
        for (std::size_t i = 0; i < events.size(); ++i) {
            take(events[i]);
            const std::size_t promised =
                i + 1 < events.size() ? events[i + 1].promised : promised_at_end;
            enumerate([&](const std::vector<bytes>& there) { visit(there, log_, promised); });
        }
    }
    std::size_t sampled() const { return sampled_; }

private:
    struct sector {
        std::size_t file;
        std::uint64_t number;
        std::vector<bytes> versions; // [0]: the durable one
    };

    void take(const device_event& e) {
        if (e.what == device_event::header) {
            log_ = e.log;
        } else if (e.what == device_event::sync) {
            for (const sector& s : pending_)
                if (s.file == e.file) put(durable_, s, s.versions.back());
            std::erase_if(pending_, [&](const sector& s) { return s.file == e.file; });
        } else {
            for (std::uint64_t done = 0; done < e.content.size();) {
                const std::uint64_t at = e.at + done, number = at / sector_bytes_;
                const std::uint64_t in = at % sector_bytes_;
                const std::uint64_t count =
                    std::min<std::uint64_t>(sector_bytes_ - in, e.content.size() - done);
                sector& s = pending(e.file, number);
                bytes next = s.versions.back();
                std::memcpy(next.data() + in, e.content.data() + done, count);
                s.versions.push_back(std::move(next));
                done += count;
            }
        }
    }
    sector& pending(std::size_t file, std::uint64_t number) {
        for (sector& s : pending_)
            if (s.file == file && s.number == number) return s;
        const std::byte* const now = durable_[file].data() + number * sector_bytes_;
        pending_.push_back({file, number, {bytes(now, now + sector_bytes_)}});
        return pending_.back();
    }
    void put(std::vector<bytes>& to, const sector& s, const bytes& version) const {
        std::memcpy(to[s.file].data() + s.number * sector_bytes_, version.data(), sector_bytes_);
    }

    template <class Visit> void enumerate(const Visit& visit) {
        std::uint64_t count = 1;
        for (const sector& s : pending_)
            if (count <= exhaustive_max) count *= s.versions.size();
        std::vector<bytes> there = durable_;
        if (count <= exhaustive_max) {
            for (std::uint64_t n = 0; n < count; ++n) {
                std::uint64_t rest = n;
                for (const sector& s : pending_) {
                    put(there, s, s.versions[rest % s.versions.size()]);
                    rest /= s.versions.size();
                }
                visit(there);
            }
            return;
        }
        ++sampled_;
        const auto all = [&](auto&& version_of) {
            for (std::size_t i = 0; i < pending_.size(); ++i)
                put(there, pending_[i], pending_[i].versions[version_of(i)]);
            visit(there);
        };
        const auto newest = [&](std::size_t i) { return pending_[i].versions.size() - 1; };
        all([](std::size_t) { return std::size_t{0}; });
        for (int n = 0; n < 12; ++n) {
            const std::size_t one = random_() % pending_.size();
            all([&](std::size_t i) { return i == one ? newest(i) : 0; });
            all([&](std::size_t i) { return i == one ? 0 : newest(i); });
            all([&](std::size_t i) { return i < one ? newest(i) : 0; });
            all([&](std::size_t i) { return random_() % pending_[i].versions.size(); });
        }
        all(newest);
    }

    static constexpr std::uint64_t exhaustive_max = 256;

    std::vector<bytes> durable_;
    known_log log_;
    std::uint64_t sector_bytes_;
    std::vector<sector> pending_;
    std::mt19937 random_{1};
    std::size_t sampled_ = 0;
};

} // namespace hf::power::test
