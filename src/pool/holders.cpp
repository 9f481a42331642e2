// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/holders.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <dirent.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace hf {
namespace {

using folder = std::unique_ptr<DIR, int (*)(DIR*)>;

folder opened(const std::string& path) { return {::opendir(path.c_str()), ::closedir}; }

bool is_number(const char* name) {
    return *name != 0 && std::all_of(name, name + std::char_traits<char>::length(name),
                                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// The text of a file of /proc. Empty if it cannot be read, for instance because its process or
/// descriptor is gone: then a stream of the standard library would throw.
std::string text_of(const std::string& path) {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    std::string text;
    std::array<char, 512> part;
    while (const std::size_t n =
               file == nullptr ? 0 : std::fread(part.data(), 1, part.size(), file.get()))
        text.append(part.data(), n);
    return text;
}

/// Whether a process's lines about a descriptor name a lock; 'to_write': an exclusive one.
bool has_lock(const std::string& lines, bool to_write) {
    const auto at = lines.find("\nlock:");
    return at != std::string::npos && (!to_write || lines.find(" WRITE ", at) != std::string::npos);
}

bool holds(const std::string& process, dev_t device, ino_t inode, bool to_write) {
    const folder descriptors = opened(process + "/fd");
    if (descriptors == nullptr) return false;
    while (const dirent* entry = ::readdir(descriptors.get())) {
        struct stat about{};
        const std::string name = entry->d_name;
        if (::stat((process + "/fd/" + name).c_str(), &about) != 0) continue;
        if (about.st_dev == device && about.st_ino == inode &&
            has_lock(text_of(process + "/fdinfo/" + name), to_write))
            return true;
    }
    return false;
}

/// The name of the process, without characters that a terminal would obey.
std::string name_of(const std::string& process) {
    std::string name = text_of(process + "/comm");
    if (!name.empty() && name.back() == '\n') name.pop_back();
    std::ranges::replace_if(name, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return name;
}

} // namespace

namespace {
lock_holder find_holder(int descriptor, bool to_write) {
    struct stat about{};
    const folder processes = ::fstat(descriptor, &about) == 0 ? opened("/proc") : opened("");
    while (const dirent* entry = processes == nullptr ? nullptr : ::readdir(processes.get())) {
        if (!is_number(entry->d_name)) continue;
        const std::string process = std::string("/proc/") + entry->d_name;
        if (holds(process, about.st_dev, about.st_ino, to_write))
            return {static_cast<pid_t>(std::stol(entry->d_name)),
                    fmt::format("process {} ({})", entry->d_name, name_of(process))};
    }
    return {0, "another process"};
}
} // namespace

/// The writer may have readers beside it (open_options::shared).
lock_holder find_lock_holder(int descriptor) {
    lock_holder writer = find_holder(descriptor, true);
    return writer.process != 0 ? writer : find_holder(descriptor, false);
}

std::string holder_of_lock(int descriptor) { return find_lock_holder(descriptor).in_words; }

} // namespace hf
