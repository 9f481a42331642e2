// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of memcached 1.6.18 besides those that options.cpp has, so that its command lines
// start this server. Options with a meaning here have their effect, and the others are reported as
// meaningless. Options that memcached refuses are refused. Two kinds are missing: those that
// promise a protection which is not here (-S, -Y), and another way to keep items (-e).
#pragma once

#include "settings.hpp"
#include <cli/command.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hf::kv {

class memcached_options {
public:
    /// 'app' keeps references to this.
    void declare(const cli::command& app, settings& chosen);
    /// The given options that mean nothing here, a line each; -o's words go to 'chosen'.
    ///
    /// Errors: throws cli::wrong_usage for what memcached does not start with.
    std::vector<std::string> judge(settings& chosen) const;

private:
    bool no_cas_ = false, lock_memory_ = false, large_pages_ = false;
    static void judge_tls(const settings& chosen);

    std::string requests_, protocol_, factor_, chunk_, delimiter_;
    std::vector<std::string> extended_;
};

} // namespace hf::kv
