// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The six structures of SIMPO's Table 3, in arrays, with its classification. What it says of a function stands above it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace table3 {

using number = std::int64_t;
using place = std::uint32_t;

class array {
public:
    //! deferrable
    void increase_all(number by) noexcept {
        for (number& each : numbers_) each += by;
    }
    //! deferrable
    void zero() noexcept { numbers_.fill(0); }
    //! instant: does I/O (printf) @print
    void print_all() noexcept {
        for (const number each : numbers_) std::printf("%lld\n", (long long)each); //@print
    }

private:
    std::array<number, 1024> numbers_{};
};

class queue {
public:
    //! deferrable
    void clear_queue() noexcept { first_ = count_ = 0; }
    //! deferrable
    void en_queue(number value) noexcept {
        if (count_ == numbers_.size()) return;
        numbers_[(first_ + count_++) % numbers_.size()] = value;
    }
    //! instant: returns number, which the caller waits for
    number de_queue() noexcept {
        if (count_ == 0) return -1;
        --count_;
        return numbers_[std::exchange(first_, (first_ + 1) % 64)];
    }
    //! instant: returns bool, which the caller waits for
    //! instant: is const
    bool is_empty() const noexcept { return count_ == 0; }
    //! instant: returns bool, which the caller waits for
    //! instant: is const
    bool is_full() const noexcept { return count_ == 64; }

private:
    std::array<number, 64> numbers_{};
    place first_ = 0, count_ = 0;
};

class heap {
public:
    //! deferrable
    void en_heap(number value) noexcept {
        if (count_ == 64) return;
        numbers_[count_++] = value;
        std::push_heap(numbers_.begin(), numbers_.begin() + count_);
    }
    //! instant: returns number, which the caller waits for
    number de_heap() noexcept {
        if (count_ == 0) return -1;
        std::pop_heap(numbers_.begin(), numbers_.begin() + count_);
        return numbers_[--count_];
    }
    //! instant: returns place
    //! instant: is const
    place get_num_elements() const noexcept { return count_; }
    //! instant: is const
    //! instant: does I/O (printf) @heap_print
    void print_all() const {
        for (place i = 0; i < count_; ++i)
            std::printf("%lld\n", (long long)numbers_[i]); //@heap_print
    }

private:
    std::array<number, 64> numbers_{};
    place count_ = 0;
};

class stack {
public:
    //! deferrable
    void push(number value) noexcept {
        if (count_ < 64) numbers_[count_++] = value;
    }
    //! instant: returns number
    number pop() noexcept { return count_ == 0 ? -1 : numbers_[--count_]; }
    //! instant: returns number
    //! instant: is const
    number peek() const noexcept { return count_ == 0 ? -1 : numbers_[count_ - 1]; }
    //! instant: returns bool
    //! instant: is const
    bool is_empty() const noexcept { return count_ == 0; }

private:
    number numbers_[64]{};
    place count_ = 0;
};

/// A binary search tree whose links are places in its array, 0 for none; no address is kept.
class tree {
public:
    //! deferrable
    void insert_element(number value) noexcept {
        if (count_ + 1 == nodes_.size()) return;
        insert_below(root_, value);
    }
    //! deferrable
    void balance() noexcept {
        std::array<number, 64> sorted{};
        place n = 0;
        flatten(root_, sorted, n);
        count_ = 0;
        root_ = build(sorted.data(), n);
    }
    //! deferrable
    void delete_element(number value) noexcept {
        std::array<number, 64> all{};
        place n = 0;
        flatten(root_, all, n);
        const auto end = std::remove(all.begin(), all.begin() + n, value);
        count_ = 0;
        root_ = build(all.data(), static_cast<place>(end - all.begin()));
    }
    //! instant: returns bool
    //! instant: is const
    bool search_element(number value) const noexcept {
        place at = root_;
        while (at != 0 && nodes_[at].value != value)
            at = value < nodes_[at].value ? nodes_[at].left : nodes_[at].right;
        return at != 0;
    }

private:
    struct node {
        number value = 0;
        place left = 0, right = 0;
    };
    void insert_below(place& at, number value) noexcept {
        if (at == 0) {
            at = ++count_;
            nodes_[at] = {value, 0, 0};
        } else {
            insert_below(value < nodes_[at].value ? nodes_[at].left : nodes_[at].right, value);
        }
    }
    void flatten(place at, std::array<number, 64>& to, place& n) const noexcept {
        if (at == 0) return;
        flatten(nodes_[at].left, to, n);
        to[n++] = nodes_[at].value;
        flatten(nodes_[at].right, to, n);
    }
    place build(const number* sorted, place n) noexcept {
        if (n == 0) return 0;
        const place at = ++count_, middle = n / 2;
        nodes_[at].value = sorted[middle];
        nodes_[at].left = build(sorted, middle);
        nodes_[at].right = build(sorted + middle + 1, n - middle - 1);
        return at;
    }
    std::array<node, 65> nodes_{};
    place root_ = 0, count_ = 0;
};

class graph {
public:
    //! deferrable
    void joinwt(place from, place to, double weight) noexcept {
        weights_[from % 16][to % 16] = weight;
    }
    //! deferrable
    void removewt(place from, place to) noexcept { weights_[from % 16][to % 16] = -1; }
    //! instant: returns bool
    //! instant: is const
    bool adjacent(place from, place to) const noexcept { return weights_[from % 16][to % 16] >= 0; }

private:
    std::array<std::array<double, 16>, 16> weights_{};
};

} // namespace table3
