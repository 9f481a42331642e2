// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "script.hpp"

#include "inject.hpp"
#include "world.hpp"

#include <holdfast/author/blocks.hpp>
#include <holdfast/author/staged.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

namespace hf::faults {
namespace {

constexpr std::size_t loose_bytes = 200;

std::size_t blob_bytes_of(char operation) {
    return operation == 's' ? 500 : operation == 'l' ? 9'000 : 60'000;
}

void apply(char operation, model& m) {
    switch (operation) {
    case 'p': ++m.list_count[0]; break;
    case 'q':
    case 'Q': ++m.list_count[1]; break;
    case 'o': --m.list_count[0]; break;
    case 'n': ++m.version; break;
    case 's':
    case 'l':
    case 'h': ++m.blob_count; break;
    case 'd': --m.blob_count; break;
    case 'a': ++m.loose; break;
    case 'f': --m.loose; break;
    default: break; // R, u, t, G, K: nothing that an examination sees
    }
}

class player {
public:
    player(pool& in, by engine, progress& made) : in_(in), engine_(engine), made_(made) {}

    outcome play(char operation) {
        if (operation == 'R') return all((w_ = in_.root<world>()) != nullptr);
        if (w_ == nullptr) return outcome::refused;
        switch (operation) {
        case 'p': return pushed(w_->lists[0]);
        case 'q': return pushed(w_->lists[1]);
        case 'Q': return pushed_elsewhere();
        case 'o':
            if (w_->lists[0].count == 0) return outcome::refused;
            pop(engine_, &w_->lists[0]);
            return outcome::done;
        case 'n': renumber(engine_, w_); return outcome::done;
        case 'd':
            if (w_->blob_count == 0) return outcome::refused;
            drop(engine_, w_);
            return outcome::done;
        case 'a': return all((loose_ = hf_alloc(loose_bytes)) != nullptr);
        case 'f':
            if (loose_ == nullptr) return outcome::refused;
            hf_free(loose_);
            loose_ = nullptr;
            return outcome::done;
        case 't': return_spare_blocks(in_); return outcome::done;
        case 'G': return all(in_.limit_growth(in_.size_bytes() + 16_KiB).ok());
        case 'K': ::kill(::getpid(), SIGKILL); return outcome::refused;
        case 'u': return with_staged(700, [](void* blob) { staged(blob).reset(); });
        default: break;
        }
        const std::size_t bytes = blob_bytes_of(operation);
        return with_staged(bytes, [&](void* blob) {
            std::memset(blob, static_cast<int>(w_->blob_count + 1), bytes);
            staged::persist(in_, blob, bytes);
            adopt(engine_, w_, blob, bytes);
        });
    }

private:
    static outcome all(bool well) { return well ? outcome::done : outcome::refused; }

    outcome pushed(list& l) {
        const std::uint64_t before = l.count;
        push(engine_, &l);
        return all(l.count == before + 1);
    }

    outcome pushed_elsewhere() {
        // The thread itself is the scenario's, and no business of the library.
        std::optional<pause> unwatched{std::in_place};
        std::atomic<bool> go{false}, over{false}, leave{false};
        outcome came = outcome::none;
        std::thread other{[&] {
            while (!go) std::this_thread::yield();
            came = pushed(w_->lists[1]);
            over = true;
            while (!leave) std::this_thread::yield();
        }};
        unwatched.reset();
        go = true;
        while (!over) std::this_thread::yield();
        leave = true; // what the library does at the thread's end is watched too
        other.join();
        return came;
    }

    template <class Use> outcome with_staged(std::size_t bytes, Use&& use) {
        auto blob = staged::in(in_, bytes);
        if (!blob) {
            copy_text(made_.refusal, blob.error().what());
            return outcome::refused;
        }
        use(blob->release());
        return outcome::done;
    }

    pool& in_;
    by engine_;
    progress& made_;
    world* w_ = nullptr;
    void* loose_ = nullptr;
};

const char* examine_list(const list& l) {
    std::uint64_t nodes = 0, sum = 0;
    for (const node* n = l.head; n != nullptr; n = n->next) {
        char text[sizeof n->text];
        text_of(n->value, text);
        if (n->value != l.count - nodes) return "a list holds a wrong value";
        if (std::memcmp(n->text, text, sizeof text) != 0) return "a list holds a wrong text";
        sum += n->value;
        if (++nodes > l.count) return "a list has more nodes than it counts";
    }
    if (nodes != l.count) return "a list has fewer nodes than it counts";
    return sum == l.sum ? nullptr : "a list's sum is torn";
}

} // namespace

void copy_text(char (&to)[text_max], std::string_view from) noexcept {
    const std::size_t count = std::min(from.size(), text_max - 1);
    std::memcpy(to, from.data(), count);
    to[count] = 0;
}

model replay(model m, std::string_view script, const progress& made, bool begun_too) {
    for (std::size_t i = 0; i < script.size(); ++i) {
        const outcome came = made.operations[i];
        if (came == outcome::done || (came == outcome::begun && begun_too)) apply(script[i], m);
    }
    return m;
}

void perform(pool& in, by engine, std::string_view script, progress& made) {
    player plays{in, engine, made};
    for (std::size_t i = 0; i < script.size(); ++i) {
        made.operations[i] = outcome::begun;
        made.operations[i] = plays.play(script[i]);
    }
}

const char* examine(pool& in, model& found) {
    world* w = in.root<world>();
    if (w == nullptr) return "no root";
    for (const list& l : w->lists)
        if (const char* wrong = examine_list(l)) return wrong;
    for (std::uint64_t i = 0; i < numbers_count; ++i)
        if (w->numbers[i] != w->version * (i + 1)) return "the numbers are torn";
    if (w->blob_count > blobs_max) return "too many blobs";
    for (std::uint64_t i = 0; i < w->blob_count; ++i)
        if (!std::all_of(w->blobs[i], w->blobs[i] + w->blob_bytes[i],
                         [&](unsigned char c) { return c == i + 1; }))
            return "a blob is torn";
    found = {.list_count = {w->lists[0].count, w->lists[1].count},
             .version = w->version,
             .blob_count = w->blob_count,
             .loose = 0};
    const std::uint64_t reachable =
        1 + found.list_count[0] + found.list_count[1] + found.blob_count;
    const std::uint64_t blocks = account(in).blocks;
    if (blocks < reachable) return "a block is lost";
    found.loose = blocks - reachable;
    return nullptr;
}

} // namespace hf::faults
