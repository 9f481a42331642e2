// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two threads compress the blocks of a text with libbz2. The persistent object holds which blocks
// remain, and the results of those that are done. SIMPO §4.3.3
#pragma once

#include "driver.hpp"

#include <holdfast/simpo/queue.hpp>

#include <array>
#include <atomic>
#include <bzlib.h>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hf::bench {

class zip_progress {
public:
    static constexpr simpo::class_name simpo_class{"zip_progress", 1};
    static constexpr std::uint32_t blocks_max = 1024;

    explicit zip_progress(std::uint32_t blocks) noexcept : blocks_(blocks) { give_back(); }
    /// A block that nobody has taken.
    std::optional<std::uint32_t> take() noexcept { return to_do_.dequeue(); }
    void finish(std::uint32_t block, std::uint64_t hash) noexcept {
        if (block >= blocks_ || done_[block] != 0) return;
        done_[block] = hash;
        ++count_;
    }
    /// After a crash: blocks that were taken and not finished become open again.
    void give_back() noexcept {
        to_do_.clear();
        for (std::uint32_t block = 0; block < blocks_; ++block)
            if (done_[block] == 0) to_do_.enqueue(block);
    }
    std::uint64_t steps_done() const noexcept { return count_; }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = count_;
        for (const std::uint64_t each : done_) hash = mixed(hash, each);
        return hash;
    }

private:
    simpo::queue<std::uint32_t, blocks_max> to_do_;
    std::array<std::uint64_t, blocks_max> done_{}; // of what was written; 0: it is not
    std::uint32_t blocks_, count_ = 0;
};

class parallel_zip {
public:
    using type = zip_progress;
    static constexpr std::size_t block_bytes = 50'000;
    /// Ends the process with a message where the text is not there.
    parallel_zip(std::string text, std::uint64_t times) : text_(std::move(text)) {
        const std::uint64_t pieces = (text_.size() + block_bytes - 1) / block_bytes;
        blocks_ = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(pieces * times, zip_progress::blocks_max));
    }
    std::uint64_t steps() const { return blocks_; }
    std::unique_ptr<type> make_native() const { return std::make_unique<type>(blocks_); }
    result<simpo::object<type>> create(pool& in, const simpo::object_options& how) const {
        return simpo::object<type>::create(in, "it", how, blocks_);
    }
    /// Blocks are taken until so many are done; with two threads that may be one more.
    template <class Object> void run(Object& object, std::uint64_t from, std::uint64_t to) const {
        object.template call<&type::give_back>();
        std::atomic<std::uint64_t> left{to - from};
        const auto work = [&](Object mine) {
            for (std::uint64_t now = left.load(); now != 0;) {
                if (!left.compare_exchange_weak(now, now - 1)) continue;
                const auto block = mine.template call<&type::take>();
                if (!block) return;
                mine.template defer<&type::finish>(*block, compress(*block));
                now = left.load();
            }
        };
        std::thread other(work, object);
        work(object);
        other.join();
        object.sync();
    }

private:
    std::uint64_t compress(std::uint32_t block) const {
        const std::size_t pieces = (text_.size() + block_bytes - 1) / block_bytes;
        const std::size_t begin = block % pieces * block_bytes;
        auto bytes = static_cast<unsigned>(std::min(block_bytes, text_.size() - begin));
        std::vector<char> out(bytes + bytes / 100 + 600);
        auto written = static_cast<unsigned>(out.size());
        if (BZ2_bzBuffToBuffCompress(out.data(), &written, const_cast<char*>(text_.data()) + begin,
                                     bytes, 9, 0, 0) != BZ_OK)
            give_up("libbz2 failed");
        std::uint64_t hash = written;
        for (unsigned i = 0; i < written; ++i)
            hash = mixed(hash, static_cast<unsigned char>(out[i]));
        return hash | 1;
    }

    std::string text_;
    std::uint32_t blocks_;
};

} // namespace hf::bench
