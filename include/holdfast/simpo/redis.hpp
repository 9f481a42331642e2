// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stream of calls in Redis, for hf::simpo::replica.  docs/guide/replication.md
// A program that includes this links libhiredis; Holdfast itself does not.
//
//     hf::simpo::redis_stream stream("127.0.0.1", 6379, "accounts");
//
// (1) An entry's ID in Redis is its position, EPOCH-NUMBER. A script compares the stream's last ID
//     and adds the entry; nothing comes between. So Redis itself keeps a former leader out.
// (2) What Redis has acknowledged is as safe as Redis: 'appendonly yes' with 'appendfsync always'
//     loses nothing; 'everysec' loses up to a second and more of calls with the machine.
#pragma once

#include <holdfast/simpo/replica.hpp>

#include <hiredis/hiredis.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <sys/time.h>
#include <utility>
#include <vector>

namespace hf::simpo {

/// Errors of all its functions: io_error, with what Redis or the system said. The next use connects
/// again.
///
/// Requires: the program ignores SIGPIPE, which hiredis does not.
class redis_stream final : public call_stream {
public:
    /// `timeout`: how long an answer may take. Connects when it is used.
    redis_stream(std::string host, int port, std::string key,
                 std::chrono::milliseconds timeout = std::chrono::milliseconds(2000))
        : host_(std::move(host)), port_(port), key_(std::move(key)), timeout_(timeout) {}

    result<bool> append(stream_position at, std::string_view call,
                        stream_position behind) override {
        const auto said = ask({"EVAL", adds, "1", key_, text(behind), text(at),
                               at.number == 0 ? "leads" : "call", call},
                              std::chrono::milliseconds(0));
        if (!said) return said.error();
        if ((*said)->type != REDIS_REPLY_INTEGER) return unexpected(**said);
        return (*said)->integer != 0;
    }
    result<std::vector<entry>> read(stream_position after, std::size_t most,
                                    std::chrono::milliseconds wait) override {
        const std::string count = std::to_string(most), block = std::to_string(wait.count());
        const std::string from = text(after);
        const auto said =
            wait.count() > 0
                ? ask({"XREAD", "COUNT", count, "BLOCK", block, "STREAMS", key_, from}, wait)
                : ask({"XREAD", "COUNT", count, "STREAMS", key_, from}, wait);
        if (!said) return said.error();
        if ((*said)->type == REDIS_REPLY_NIL) return std::vector<entry>{};
        const redisReply* const stream = at(at(said->get(), 0), 1);
        if (stream == nullptr) return unexpected(**said);
        return entries(*stream);
    }
    result<stream_position> last() override {
        const auto said = ask({"XINFO", "STREAM", key_}, std::chrono::milliseconds(0));
        if (!said) return said.error();
        if ((*said)->type == REDIS_REPLY_ERROR &&
            words(**said).find("no such key") != std::string_view::npos)
            return stream_position{};
        for (std::size_t i = 0; at(said->get(), i + 1) != nullptr; i += 2)
            if (words(*at(said->get(), i)) == "last-generated-id")
                return position_in(
                    *at(said->get(), i + 1)); // also where its last entries were trimmed
        return unexpected(**said);
    }
    status keep_lease(std::uint64_t epoch, std::chrono::milliseconds length) override {
        const auto said = ask({"SET", lease(epoch), "1", "PX", std::to_string(length.count())},
                              std::chrono::milliseconds(0));
        if (!said) return said.error();
        return (*said)->type == REDIS_REPLY_STATUS ? status{} : unexpected(**said);
    }
    result<bool> has_lease(std::uint64_t epoch) override {
        const auto said = ask({"EXISTS", lease(epoch)}, std::chrono::milliseconds(0));
        if (!said) return said.error();
        if ((*said)->type != REDIS_REPLY_INTEGER) return unexpected(**said);
        return (*said)->integer != 0;
    }

private:
    struct free_context {
        void operator()(redisContext* of) const noexcept { redisFree(of); }
    };
    struct free_reply {
        void operator()(redisReply* of) const noexcept { freeReplyObject(of); }
    };
    using reply = std::unique_ptr<redisReply, free_reply>;

    /// Upholds (1). Arguments: the last ID that is expected, the new one, its field and value.
    static constexpr std::string_view adds = R"lua(
        local last, of = '0-0', redis.pcall('XINFO', 'STREAM', KEYS[1])
        if of.err and not string.find(of.err, 'no such key', 1, true) then return of end
        for i = 1, #of, 2 do if of[i] == 'last-generated-id' then last = of[i + 1] end end
        if last ~= ARGV[1] then return 0 end
        redis.call('XADD', KEYS[1], ARGV[2], ARGV[3], ARGV[4])
        return 1
    )lua";

    static std::string text(stream_position of) {
        return std::to_string(of.epoch) + "-" + std::to_string(of.number);
    }
    std::string lease(std::uint64_t epoch) const {
        return key_ + ":lease:" + std::to_string(epoch);
    }
    static std::string_view words(const redisReply& of) {
        return of.str == nullptr ? std::string_view() : std::string_view(of.str, of.len);
    }
    static const redisReply* at(const redisReply* of, std::size_t index) {
        if (of == nullptr || of->type != REDIS_REPLY_ARRAY || index >= of->elements) return nullptr;
        return of->element[index];
    }
    status failed(std::string_view why) const {
        return {errc::io_error, "stream \"" + key_ + "\" of Redis at " + host_ + ":" +
                                    std::to_string(port_) + ": io_error: " + std::string(why)};
    }
    status unexpected(const redisReply& what) const {
        return failed(what.type == REDIS_REPLY_ERROR
                          ? words(what)
                          : std::string_view("expected a stream's answer, found another kind"));
    }

    result<stream_position> position_in(const redisReply& id) const {
        stream_position out;
        const char* const end = id.str + id.len;
        const auto [dash, ok] = std::from_chars(id.str, end, out.epoch);
        if (ok != std::errc() || dash == end ||
            std::from_chars(dash + 1, end, out.number).ec != std::errc())
            return failed("expected an ID of two numbers, found " + std::string(words(id)));
        return out;
    }
    /// Elements [id, [field, value …]]: replica writes one field an entry.
    result<std::vector<entry>> entries(const redisReply& list) const {
        std::vector<entry> found;
        for (std::size_t i = 0; i < list.elements; ++i) {
            const redisReply* const id = at(list.element[i], 0);
            const redisReply* const fields = at(list.element[i], 1);
            const redisReply* const value = at(fields, 1);
            if (id == nullptr || value == nullptr)
                return failed("expected entries of one field, found others");
            entry each;
            const auto found_at = position_in(*id);
            if (!found_at) return found_at.error();
            each.at = *found_at;
            each.call = words(*value);
            found.push_back(std::move(each));
        }
        return found;
    }

    status connect() {
        if (context_ != nullptr) return {};
        context_.reset(redisConnectWithTimeout(host_.c_str(), port_, interval(timeout_)));
        if (context_ == nullptr) return failed("out of memory");
        if (context_->err == 0) return {};
        const status why = failed(context_->errstr);
        context_.reset();
        return why;
    }
    /// `more`: how long Redis itself waits before it answers.
    result<reply> ask(std::initializer_list<std::string_view> command,
                      std::chrono::milliseconds more) {
        if (status s = connect(); !s.ok()) return s;
        std::vector<const char*> texts;
        std::vector<std::size_t> lengths;
        for (const std::string_view each : command) {
            texts.push_back(each.data());
            lengths.push_back(each.size());
        }
        redisSetTimeout(context_.get(), interval(timeout_ + more));
        reply said(static_cast<redisReply*>(redisCommandArgv(
            context_.get(), static_cast<int>(texts.size()), texts.data(), lengths.data())));
        if (said != nullptr) return said;
        const status why = failed(context_->errstr);
        context_.reset(); // what it still answers belongs to no later question
        return why;
    }
    static timeval interval(std::chrono::milliseconds of) noexcept {
        return {static_cast<time_t>(of.count() / 1000),
                static_cast<suseconds_t>(of.count() % 1000 * 1000)};
    }

    std::string host_;
    int port_;
    std::string key_;
    std::chrono::milliseconds timeout_;
    std::unique_ptr<redisContext, free_context> context_;
};

} // namespace hf::simpo
