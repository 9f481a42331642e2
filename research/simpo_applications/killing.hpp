// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A part of a program in a process of its own, which is killed.
#pragma once

#include <bench/temporary_file.hpp>

#include <csignal>
#include <cstddef>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::bench {

/// Memory that a child shares with its parent.
class shared_memory {
public:
    explicit shared_memory(std::size_t bytes) : bytes_(bytes) {
        at_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at_ == MAP_FAILED) give_up("no memory to share with a child");
    }
    ~shared_memory() { ::munmap(at_, bytes_); }
    shared_memory(const shared_memory&) = delete;
    /// A new one.
    template <class T> T& as() { return *::new (at_) T; }

private:
    std::size_t bytes_;
    void* at_;
};

/// Requires: no other thread of the program runs, and it has no pool open.
class killed_child {
public:
    /// The child does 'work', then waits to be killed.
    template <class Work> explicit killed_child(Work&& work) : id_(::fork()) {
        if (id_ < 0) give_up("fork failed");
        if (id_ != 0) return;
        work();
        for (;;) ::pause();
    }
    ~killed_child() {
        if (id_ > 0) kill();
    }
    killed_child(const killed_child&) = delete;
    /// False: it has given up, and said why.
    bool runs() {
        int status = 0;
        if (id_ > 0 && ::waitpid(id_, &status, WNOHANG) == id_) id_ = 0;
        return id_ > 0;
    }
    void kill() {
        if (id_ <= 0) give_up("the child ended before it was killed");
        int status = 0;
        ::kill(id_, SIGKILL);
        if (::waitpid(id_, &status, 0) != id_ || !WIFSIGNALED(status))
            give_up("the child ended before it was killed");
        id_ = 0;
    }

private:
    pid_t id_;
};

} // namespace hf::bench
