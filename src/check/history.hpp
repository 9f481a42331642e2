// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The legal states at a moment of a run: those after some order of operations in which
//   (1) every durable operation is, and acknowledged ones or those under way may be; no other
//       operation is. An acknowledged one is durable, or, if it is buffered, all before it of its
//       thread are;
//   (2) operations of one thread keep their order, and one that was acknowledged before another
//       began comes before it.
#pragma once

#include <check/explorer.hpp>

#include <map>
#include <string>
#include <vector>

namespace hf::check {

/// Threads' numbers, in the order in which their operations take effect.
using operation_order = std::vector<unsigned>;

/// Every order of up to 'operations[t]' operations of each thread t, shorter ones first.
std::vector<operation_order> all_orders(const std::vector<unsigned>& operations);

class history {
public:
    explicit history(const std::map<operation_order, outcome>& states);
    void began(unsigned thread);
    void acknowledged(unsigned thread, bool buffered = false);
    /// All that was acknowledged is durable now.
    void settled();
    /// The states that are right now.
    legal_set legal() const;

private:
    struct per_thread {
        std::vector<std::vector<unsigned>>
            before; // per operation begun: acknowledged ones, by thread
        unsigned acknowledged = 0, durable = 0;
    };
    bool possible(const operation_order& order) const;
    per_thread& of_thread(unsigned thread);

    const std::map<operation_order, outcome>* states_;
    std::vector<per_thread> threads_;
};

} // namespace hf::check
