// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "journal.hpp"

#include "protocol.hpp"

#include <cstdio>
#include <ctime>

namespace hf::kv {
namespace {

// A line under way, in memcached's words.
class words {
public:
    words() {
        timespec now{};
        ::clock_gettime(CLOCK_REALTIME, &now);
        add("ts=", static_cast<std::uint64_t>(now.tv_sec));
        add(".", static_cast<std::uint64_t>(now.tv_nsec / 1000));
    }
    void add(std::string_view name, std::uint64_t number) {
        char digits[20];
        add(name, std::string_view(digits, format_number(digits, number)));
    }
    void add(std::string_view name, std::string_view text) {
        text_.append(name);
        text_.append(text);
    }
    void add_key(std::string_view key) {
        text_.append(" key=");
        append_encoded(text_, key);
    }
    std::string_view text() const noexcept { return text_.view(); }

private:
    byte_buffer text_;
};

} // namespace

void append_encoded(byte_buffer& out, std::string_view key) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    char text[3 * key_bytes_max];
    std::size_t length = 0;
    for (const char c : key.substr(0, key_bytes_max)) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            text[length++] = c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        text[length++] = '%';
        text[length++] = digits[byte >> 4];
        text[length++] = digits[byte & 15];
    }
    out.append({text, length});
}

// The number is given out under the lock, so that a journal's lines are in order.
void journal::add(watched kind, std::string_view text) {
    const std::size_t space = text.find(' '); // behind the time
    const std::scoped_lock held(lock_);
    const std::uint64_t number = number_->fetch_add(1, std::memory_order_relaxed) + 1;
    char middle[32] = " gid=";
    const std::string_view gid(middle, 5 + format_number(middle + 5, number));
    const entry of{number, kind, static_cast<std::uint16_t>(text.size() + gid.size() + 1)};
    if (lines_.size() + sizeof of + of.bytes > bytes_max_) { // (2)
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    lines_.append({reinterpret_cast<const char*>(&of), sizeof of});
    lines_.append(text.substr(0, space));
    lines_.append(gid);
    lines_.append(text.substr(space));
    lines_.append("\n"); // alone, as memcached
    written_.fetch_add(1, std::memory_order_relaxed);
}

void journal::take(byte_buffer& empty) {
    const std::scoped_lock held(lock_);
    lines_.swap(empty);
}

void journal::fetched(const watched_item& item, std::string_view status) {
    words line;
    line.add(" type=item_get", std::string_view());
    line.add_key(item.key);
    line.add(" status=", status);
    line.add(" clsid=", item.size_class);
    line.add(" cfd=", static_cast<std::uint64_t>(item.client));
    line.add(" size=", item.value_bytes);
    add(watched::fetchers, line.text());
}

void journal::stored(const watched_item& item, std::string_view status, std::string_view command,
                     std::uint32_t ttl_s) {
    words line;
    line.add(" type=item_store", std::string_view());
    line.add_key(item.key);
    line.add(" status=", status);
    line.add(" cmd=", command);
    line.add(" ttl=", ttl_s);
    line.add(" clsid=", item.size_class);
    line.add(" cfd=", static_cast<std::uint64_t>(item.client));
    line.add(" size=", item.value_bytes);
    add(watched::mutations, line.text());
}

void journal::evicted(const watched_item& item, bool fetched, std::int64_t left_s,
                      std::uint32_t unused_s) {
    words line;
    line.add(" type=eviction", std::string_view());
    line.add_key(item.key);
    line.add(" fetch=", fetched ? std::string_view("yes") : std::string_view("no"));
    if (left_s < 0) line.add(" ttl=", std::string_view("-1"));
    else line.add(" ttl=", static_cast<std::uint64_t>(left_s));
    line.add(" la=", unused_s);
    line.add(" clsid=", item.size_class);
    line.add(" size=", item.value_bytes);
    add(watched::evictions, line.text());
}

void journal::connected(std::string_view from, int client) {
    words line;
    line.add(" type=conn_new ", from);
    line.add(" cfd=", static_cast<std::uint64_t>(client));
    add(watched::connections, line.text());
}

void journal::disconnected(std::string_view from, std::string_view why, int client) {
    words line;
    line.add(" type=conn_close ", from);
    line.add(" reason=", why);
    line.add(" cfd=", static_cast<std::uint64_t>(client));
    add(watched::connections, line.text());
}

void journal::said(std::string_view text, int client) {
    constexpr std::size_t shown_bytes_max = 512; // as memcached
    words line;
    line.add(" <", static_cast<std::uint64_t>(client));
    line.add(" ", text.substr(0, shown_bytes_max));
    add(watched::commands, line.text());
}

} // namespace hf::kv
