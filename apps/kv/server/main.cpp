// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// holdfast-kv: a memcached-protocol server whose items survive kill -9.
#include "daemon_start.hpp"
#include "notify_socket.hpp"
#include "options.hpp"
#include "pid_file.hpp"
#include "server.hpp"
#include "tls.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <grp.h>
#include <pwd.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace hf::kv;

int refuse(const std::string& why) {
    std::fprintf(stderr, "holdfast-kv: %s\n", why.c_str());
    return 1;
}

hf::status failed(const std::string& doing) {
    return {hf::errc::io_error, doing + ": " + std::strerror(errno)};
}

// Descriptors for all connections, the pool, and the loops.
hf::status raise_descriptor_limit(std::uint32_t connections) {
    const rlim_t needed = rlim_t{connections} + 64 + 4 * 64;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return failed("cannot read the descriptor limit");
    if (limit.rlim_cur >= needed) return {};
    limit.rlim_cur = needed;
    if (limit.rlim_max < needed) limit.rlim_max = needed;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return failed(fmt::format("cannot allow {} connections (-c)", connections));
    return {};
}

hf::status allow_core_files() {
    const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_CORE, &all) == 0) return {};
    rlimit limit{};
    if (::getrlimit(RLIMIT_CORE, &limit) != 0) return failed("cannot read the core file limit");
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur == 0)
        return failed("cannot allow core files (-r)");
    return {};
}

hf::status become(const std::string& user) {
    if (user.empty() || ::geteuid() != 0) return {};
    const passwd* const entry = ::getpwnam(user.c_str());
    if (entry == nullptr) return {hf::errc::bad_argument, "no such user: " + user};
    if (::initgroups(user.c_str(), entry->pw_gid) != 0 || ::setgid(entry->pw_gid) != 0 ||
        ::setuid(entry->pw_uid) != 0)
        return failed("cannot become " + user);
    return {};
}

// Else a socket may get the number of a stream that is closed, -v would write to it, and -d put
// /dev/null in its place.
void open_standard_streams() {
    int fd = -1;
    do fd = ::open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) ::close(fd);
}

// The program of another engine lies beside this one.
int start_engine(const std::string& engine, char** argv) {
    std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    program += engine == "auto" ? "/holdfast-kv" : "/holdfast-kv-" + engine;
    ::execv(program.c_str(), argv);
    return refuse(failed("cannot start " + program).what());
}

void announce(const service& serving, const listeners& from) {
    hf::pool& pool = serving.items->pool();
    for (const std::string& warning : pool.warnings())
        std::fprintf(stderr, "holdfast-kv: %s\n", warning.c_str());
    if (pool.growth_limit() > serving.chosen.store.max_bytes)
        std::fprintf(stderr,
                     "holdfast-kv: the pool has %llu MiB, more than -m, and stays so large\n",
                     static_cast<unsigned long long>(pool.growth_limit() >> 20));
    fmt::print(
        "holdfast-kv: listening on {}, pool {}, mode {}, recovered {} sections in {:.1f} ms\n",
        from.where(), pool.path(), hf::name(pool.mode()), pool.recovered().sections_pending,
        pool.recovered().open_ms);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    open_standard_streams();
    const command_line line = parse_command_line(argc, argv);
    if (line.exit_code >= 0) return line.exit_code;
    if (!line.engine.empty() && line.engine != store::engine_name())
        return start_engine(line.engine, argv);
    service serving;
    serving.chosen = line.chosen;
    serving.verbosity = line.verbosity;
    const settings& chosen = serving.chosen;
    for (const std::string& warning : line.warnings)
        std::fprintf(stderr, "holdfast-kv: %s\n", warning.c_str());
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN); // past a limit (ulimit -f) the pool is full
    ::signal(SIGHUP, SIG_IGN);  // memcached reads passwords again; there are no passwords here
    block_stop_signals();

    // In this order so that whatever is refused leaves the pool's file untouched.
    listeners from;
    daemon_start background;
    if (chosen.daemon)
        if (auto done = background.begin(); !done.ok()) return refuse(done.what());
    if (chosen.core_files)
        if (auto done = allow_core_files(); !done.ok()) return refuse(done.what());
    tls secured(chosen.secured);
    if (chosen.secured.enabled) {
        if (auto done = secured.load(); !done.ok()) return refuse(done.what());
        serving.secured = &secured;
    }
    if (auto done = raise_descriptor_limit(chosen.connections_max); !done.ok())
        return refuse(done.what());
    if (chosen.unix_path.empty())
        if (auto done = from.bind_tcp(chosen); !done.ok()) return refuse(done.what());
    pid_file number;
    if (auto done = number.open(chosen.pid_file); !done.ok()) return refuse(done.what());
    // The user that serves the pool opens it: new files belong to that user, and the server follows
    // no path in that user's folder as root.
    if (auto done = become(chosen.user); !done.ok()) return refuse(done.what());
    auto opened = store::open(chosen.store);
    if (!opened) return refuse(opened.error().what());
    serving.items = opened->get();
    serving.started = serving.items->now();
    serving.tracks_sizes = chosen.track_sizes;
    if (chosen.prefix_delimiter != '\0') {
        serving.prefixes.delimit_by(chosen.prefix_delimiter);
        serving.prefixes.count(true);
    }
    if (!chosen.unix_path.empty())
        if (auto done = from.bind_unix(chosen); !done.ok()) return refuse(done.what());
    if (auto done = number.write(); !done.ok()) return refuse(done.what());
    if (auto done = from.listen(chosen.backlog); !done.ok()) return refuse(done.what());

    if (const char* const ports = std::getenv("MEMCACHED_PORT_FILENAME"))
        if (auto done = from.write_ports(ports); !done.ok()) return refuse(done.what());
    const hf::status served = serve(serving, from, secured, [&] {
        announce(serving, from);
        background.serves(serving.verbosity > 0);
        tell_service_manager("READY=1");
    });
    tell_service_manager("STOPPING=1");
    from.close();
    number.remove();
    return served.ok() ? 0 : refuse(served.what());
}
