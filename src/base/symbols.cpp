// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/symbols.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>

namespace hf {
namespace {

namespace fs = std::filesystem;

using calls = std::vector<std::string>;
std::map<const void*, calls> looked_up;

/// The place of this library's own sources when it was built; ends with '/'.
constexpr std::string_view this_file = __FILE__, its_place = "src/base/symbols.cpp";
constexpr std::string_view own_root = this_file.substr(0, this_file.size() - its_place.size());
static_assert(this_file.ends_with(its_place));

std::vector<std::string> output_of(const std::string& command) {
    std::vector<std::string> lines;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"),
                                                               ::pclose);
    char line[4096];
    while (pipe && std::fgets(line, sizeof line, pipe.get()) != nullptr) {
        lines.emplace_back(line);
        while (!lines.back().empty() && lines.back().back() == '\n') lines.back().pop_back();
    }
    return lines;
}

std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

/// The command that takes addresses, with the options that both understand; empty: none installed.
const std::string& symbolizer() {
    static const std::string found = [] {
        for (const char* name :
             {"llvm-symbolizer-19 --output-style=GNU", "llvm-symbolizer-21 --output-style=GNU",
              "llvm-symbolizer --output-style=GNU", "addr2line"}) {
            const std::string command = name;
            const std::string program = command.substr(0, command.find(' '));
            if (!output_of("command -v " + program + " 2>/dev/null").empty())
                return command + " -a -f -i -p -C";
        }
        return std::string();
    }();
    return found;
}

struct location {
    std::string file;           // that has the code
    std::uintptr_t address = 0; // as its symbols count
    std::string nearest;        // symbol and distance
};

/// The location of the call that returned to 'address': the call is one byte earlier.
location locate(const void* address) {
    const void* const call = static_cast<const char*>(address) - 1;
    Dl_info about{}, self{};
    if (address == nullptr || ::dladdr(call, &about) == 0) return {};
    location out{about.dli_fname, reinterpret_cast<std::uintptr_t>(call), {}};
    // The program's own name is the name of its call, which need not lead to it.
    if (::dladdr(reinterpret_cast<const void*>(&locate), &self) != 0 &&
        self.dli_fbase == about.dli_fbase) {
        std::error_code ignored;
        if (const fs::path exe = fs::read_symlink("/proc/self/exe", ignored); !exe.empty())
            out.file = exe;
    }
    const auto base = reinterpret_cast<std::uintptr_t>(about.dli_fbase);
    const auto* header = static_cast<const Elf64_Ehdr*>(about.dli_fbase);
    if (header->e_type == ET_DYN) out.address -= base;
    if (about.dli_sname == nullptr) {
        out.nearest = fmt::format("{}+{:#x}", fs::path(out.file).filename().string(), out.address);
        return out;
    }
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(about.dli_sname, nullptr, nullptr, nullptr), std::free);
    out.nearest =
        fmt::format("{}+{:#x}", plain ? plain.get() : about.dli_sname,
                    static_cast<const char*>(call) - static_cast<const char*>(about.dli_saddr));
    return out;
}

/// The outermost folder above the file that is a project's.
std::string root_of(const fs::path& file) {
    static std::map<fs::path, std::string> known;
    const fs::path folder = file.parent_path();
    if (const auto found = known.find(folder); found != known.end()) return found->second;
    std::string root;
    std::error_code ignored;
    for (fs::path at = folder; at.has_relative_path(); at = at.parent_path())
        if (fs::exists(at / ".git", ignored)) {
            root = at.string() + "/";
            break;
        } else if (fs::exists(at / "CMakeLists.txt", ignored)) root = at.string() + "/";
    return known[folder] = root;
}

std::string from_root(const std::string& file) {
    if (file.starts_with(own_root)) return file.substr(own_root.size());
    const std::string root = file.starts_with('/') ? root_of(file) : std::string();
    return file.substr(root.size());
}

/// Code that stands between the accesses of a program and the checker.
bool between(const std::string& file) {
    for (const char* library : {"/usr/include/", "/usr/lib/", "/usr/bin/"})
        if (file.starts_with(library)) return file.find("/include/holdfast/") == file.npos;
    if (!file.starts_with(own_root)) return false;
    const std::string_view rest = std::string_view(file).substr(own_root.size());
    if (rest.starts_with("src/persist/") || rest.starts_with("src/trace/") ||
        rest == "src/pool/medium.hpp" || rest == "include/holdfast/author/persist.hpp")
        return true;
    return rest.starts_with("src/check/") && !rest.ends_with("_test.cpp");
}

/// The call in a line of the symbolizer: "function at file:line:column"; else nothing.
std::string call_of(std::string_view line) {
    constexpr std::string_view inlined = " (inlined by) ";
    if (line.starts_with(inlined)) line.remove_prefix(inlined.size());
    else if (const auto after = line.find(": "); line.starts_with("0x") && after != line.npos)
        line.remove_prefix(after + 2);
    const auto at = line.rfind(" at ");
    if (at == line.npos) return {};
    std::string function(line.substr(0, at));
    const std::string_view where = line.substr(at + 4);
    const auto colon = where.find(':', where.rfind('/') == where.npos ? 0 : where.rfind('/'));
    if (colon == where.npos || where.starts_with("??")) return {};
    const std::string file = fs::path(where.substr(0, colon)).lexically_normal();
    const std::string_view number = where.substr(colon + 1);
    if (between(file)) return {};
    constexpr std::string_view unnamed = "(anonymous namespace)::";
    for (auto n = function.find(unnamed); n != function.npos; n = function.find(unnamed))
        function.erase(n, unnamed.size());
    if (const auto arguments = function.find('('); arguments != function.npos)
        function.erase(arguments);
    return fmt::format("{} at {}:{}", function, from_root(file),
                       number.substr(0, number.find_first_not_of("0123456789")));
}

/// Looks up addresses of one file, which are all that the symbolizer is given.
void ask(const std::string& file, const std::vector<std::pair<const void*, location>>& wanted) {
    std::string command = symbolizer() + " -e " + quoted(file);
    for (const auto& [address, where] : wanted) command += fmt::format(" {:#x}", where.address);
    auto next = wanted.begin();
    calls* to = nullptr;
    for (const std::string& line : output_of(command + " 2>/dev/null")) {
        if (line.starts_with("0x") && next != wanted.end()) to = &looked_up[next++->first];
        if (to == nullptr) continue;
        if (const std::string call = call_of(line); !call.empty()) to->push_back(call);
    }
    if (to != nullptr) return;
    for (const auto& [address, where] : wanted) looked_up[address] = {where.nearest};
}

} // namespace

void look_up(const std::vector<code_place>& places) {
    std::map<std::string, std::vector<std::pair<const void*, location>>> by_file;
    for (const code_place& p : places)
        for (const void* address : p.at) {
            if (address == nullptr || !looked_up.try_emplace(address).second) continue;
            location where = locate(address);
            if (where.file.empty()) continue;
            by_file[where.file].emplace_back(address, std::move(where));
        }
    for (const auto& [file, wanted] : by_file) {
        if (!symbolizer().empty()) ask(file, wanted);
        else
            for (const auto& [address, where] : wanted) looked_up[address] = {where.nearest};
    }
}

std::vector<std::string> calls_at(const code_place& place) {
    look_up({place});
    calls out;
    for (const void* address : place.at)
        if (const auto found = looked_up.find(address); found != looked_up.end())
            out.insert(out.end(), found->second.begin(), found->second.end());
    return out;
}

} // namespace hf
