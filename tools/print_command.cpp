// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdb looks at a core file. The one made here has no bytes of a process: it says that the pool's
// file lies at the pool's canonical address. So gdb reads the file wherever an expression leads
// there. It can call nothing and write nothing.
#include "print_command.hpp"

#include "json.hpp"
#include "lost_bytes.hpp"
#include "pool_report.hpp"
#include "removed_files.hpp"
#include <pool/holders.hpp>
#include <verify/image.hpp>
#include <verify/read_file.hpp>

#include <holdfast/pool.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <filesystem>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace hf::tools {
namespace {

constexpr int cannot_print = 2;

struct asked {
    std::string path, expression, program, type;
};

[[noreturn]] void refuse(const status& why) {
    fmt::print(stderr, "{}\n", why.what());
    throw cli::leave{cannot_print};
}

[[noreturn]] void refuse(const std::string& why) {
    fmt::print(stderr, "holdfast print: {}\n", why);
    throw cli::leave{cannot_print};
}

template <class Part> void append(std::string& to, const Part& part) {
    to.append(reinterpret_cast<const char*>(&part), sizeof part);
}

/// Core file: the file 'path' lies at 'base'.
std::string core_of(const std::string& path, std::uint64_t base, std::uint64_t bytes) {
    constexpr std::uint64_t page = 4096;
    std::string about; // NT_FILE: count, unit of offsets, {first, end, offset} of each file, names
    for (const std::uint64_t word : {std::uint64_t{1}, page, base, base + bytes, std::uint64_t{0}})
        append(about, word);
    about += path + '\0';
    Elf64_Nhdr head{};
    head.n_namesz = sizeof "CORE";
    head.n_descsz = static_cast<Elf64_Word>(about.size());
    head.n_type = NT_FILE;
    std::string note;
    append(note, head);
    note.append("CORE\0\0\0", 8);
    note += about;
    note.resize((note.size() + 3) / 4 * 4);

    Elf64_Ehdr elf{};
    std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    elf.e_ident[EI_DATA] = ELFDATA2LSB;
    elf.e_ident[EI_VERSION] = EV_CURRENT;
    elf.e_type = ET_CORE;
    elf.e_machine = EM_X86_64;
    elf.e_version = EV_CURRENT;
    elf.e_phoff = elf.e_ehsize = sizeof elf;
    elf.e_phentsize = sizeof(Elf64_Phdr);
    elf.e_phnum = 2;
    Elf64_Phdr notes{}, memory{};
    notes.p_type = PT_NOTE;
    notes.p_offset = sizeof elf + 2 * sizeof(Elf64_Phdr);
    notes.p_filesz = note.size();
    memory.p_type = PT_LOAD;
    memory.p_flags = PF_R;
    memory.p_offset = notes.p_offset + note.size();
    memory.p_vaddr = base;
    memory.p_memsz = bytes;
    std::string core;
    append(core, elf);
    append(core, notes);
    append(core, memory);
    return core + note;
}

/// A file without a name, which lives as long as a process has it. Its path there.
std::string unnamed_file(const std::string& content) {
    const int fd = ::memfd_create("holdfast-print", 0);
    if (fd < 0 ||
        ::write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
        refuse(fmt::format("a file in memory: {}", std::strerror(errno)));
    return fmt::format("/proc/self/fd/{}", fd);
}

/// The program that has the root's type.
std::string program_for(const asked& a, const verify::read_file& file) {
    std::string found = a.program;
    if (found.empty()) {
        const pid_t user = file.in_use() ? find_lock_holder(file.descriptor()).process : 0;
        if (user == 0)
            refuse(fmt::format("expected --program PROGRAM, whose debug information has the root's "
                               "type, or a process that has {} open; found neither",
                               a.path));
        found = fmt::format("/proc/{}/exe", user);
    }
    if (::access(found.c_str(), R_OK) != 0)
        refuse(fmt::format("--program: '{}': {}", found, std::strerror(errno)));
    return found;
}

/// Beside the command's own folder, where it is built and where it is installed.
std::string script() {
    std::error_code none;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", none);
    const auto at = own.parent_path().parent_path() / "share/holdfast/gdb/print.py";
    if (::access(at.c_str(), R_OK) != 0)
        refuse(fmt::format("expected the script {} of this command, found none", at.string()));
    return at.string();
}

struct root_object {
    std::uint64_t offset, bytes;
};

/// Where it is, in bounds of the file.
root_object root_of(const std::string& path, const verify::pool_image& pool) {
    const root_words words = pool.roots();
    if (words.root_offset == 0)
        refuse(fmt::format("{}: expected a root object, found none: its program has not asked for "
                           "one yet",
                           path));
    if (!pool.has(words.root_offset, words.root_bytes))
        refuse(refusal(path, errc::corrupt,
                       fmt::format("root words: expected a place in the file of {:#x} bytes, found "
                                   "{:#x}, {} bytes",
                                   pool.file().size(), words.root_offset, words.root_bytes)));
    return {words.root_offset, words.root_bytes};
}

void warn(const std::string& path, const pool_header& header, bool in_use) {
    if (static_cast<mode>(header.mode) == mode::power && (in_use || header.open != 0))
        fmt::print(stderr, "{}: open in mode power: shown is its file, as of the last checkpoint\n",
                   path);
    else if (in_use)
        fmt::print(stderr,
                   "{}: a process has the pool open: what it changes meanwhile may be shown "
                   "half done\n",
                   path);
    else if (header.open != 0)
        fmt::print(stderr,
                   "{}: the pool was not closed cleanly: a section that was cut short may be "
                   "shown half done, until its program has opened it\n",
                   path);
}

void print(const asked& a) {
    answer_lost_bytes();
    const auto file = verify::read_file::look(a.path);
    if (!file) {
        const std::string removed =
            file.error().code() == errc::not_found ? working_on_removed(a.path) : "";
        refuse(removed.empty() ? file.error()
                               : status{errc::not_found, file.error().what() + "; " + removed});
    }
    const auto header = header_of(a.path, file->bytes());
    if (!header) refuse(header.error());
    const root_object root = root_of(a.path, verify::pool_image(file->bytes(), *header));
    const std::string program = program_for(a, *file), with = script();
    warn(a.path, *header, file->in_use());
    const std::string core = core_of(std::filesystem::absolute(a.path).string(),
                                     header->base_address, file->bytes().size());
    const json_text request{
        {"core", unnamed_file(core)},   {"program", program},
        {"base", header->base_address}, {"root", header->base_address + root.offset},
        {"bytes", root.bytes},          {"type", a.type},
        {"expression", a.expression}};
    ::setenv("HOLDFAST_PRINT", request.text().c_str(), 1);
    ::execlp("gdb", "gdb", "-nx", "-q", "-batch", "-x", with.c_str(), nullptr);
    refuse(errno == ENOENT ? std::string("expected the program gdb in PATH, found none")
                           : fmt::format("gdb: {}", std::strerror(errno)));
}

} // namespace

void add_print_command(const cli::command& app, char**) {
    const auto a = std::make_shared<asked>();
    a->expression = "*$root";
    const cli::command command =
        app.subcommand("print", "what an expression is in a pool: of the root object, by gdb");
    command.value("POOL", a->path, "the pool's file").required();
    command
        .value("EXPRESSION", a->expression,
               "as gdb takes it; $root is a pointer to the root object")
        .show_default();
    command.value("--program", a->program,
                  "a program or library with the root's type, built with -g; default: the one that "
                  "has the pool open");
    command.value("--type", a->type, "the root's type, where the program does not show it");
    command.footer("Needs gdb. The pool's file is read, and nothing is changed or called.");
    command.callback([a] { print(*a); });
}

} // namespace hf::tools
