// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Notes in a file, to show what a failure-atomic function looks like that allocates, frees and
// takes bytes from outside the pool. docs/guide/writing-a-failure-atomic-function.md is cut from
// it.
//
//   $ example_notebook notes.hf write "buy milk"
//   $ example_notebook notes.hf write-long "the whole of a long letter"
//   $ example_notebook notes.hf tear-out
//   $ example_notebook notes.hf list
// [include]
#include <holdfast/author/staged.hpp>
#include <holdfast/holdfast.hpp>
// [/include]

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

namespace {

// [types]
struct note {
    note* next;
    char* text;
    std::uint64_t bytes;
};

/// The pool's root. All zeros when the pool is new: an empty notebook, and a free lock.
struct notebook {
    hf::mutex lock;
    note* newest;
    std::uint64_t count;
};
// [/types]

// [write]
/// Adds a note. Returns false, and changes nothing, when the pool is full.
HF_TXFUNC bool write(notebook* book, const char* text, std::uint64_t bytes) noexcept {
    const char* kept = hf::vlog_preserve(text, bytes);  // 'text' dies with the process; 'kept' does not
    char* copy = hf::make_array<char>(bytes);
    note* added = hf::make<note>(book->newest, copy, bytes);
    if (copy == nullptr || added == nullptr) {
        hf_free(copy);
        hf_free(added);
        return false;
    }
    std::memcpy(copy, kept, bytes);  // fresh memory: nothing to log
    book->newest = added;            // an input that is overwritten: logged first
    hf::crash_point("half-written");
    book->count += 1;                // and another
    return true;
}
// [/write]

// [write-long]
/// The same for a text already staged: the section logs one pointer, however long the text is.
HF_TXFUNC bool write_staged(notebook* book, char* staged, std::uint64_t bytes) noexcept {
    note* added = hf::make<note>(book->newest, staged, bytes);
    if (added == nullptr) return false;
    hf::staged::adopt(staged);
    book->newest = added;
    hf::crash_point("half-adopted");
    book->count += 1;
    return true;
}

bool write_long(hf::pool& pool, notebook* book, std::string_view text) {
    auto staged = hf::staged::in(pool, text.size());
    if (!staged) return false;
    std::memcpy(staged->get(), text.data(), text.size()); // before the section: plain stores
    hf::staged::persist(pool, staged->get(), text.size());
    std::scoped_lock held{book->lock};
    if (!write_staged(book, staged->as<char>(), text.size())) return false; // the block is given back
    staged->release();                                                       // the section has adopted it
    return true;
}
// [/write-long]

// [tear-out]
/// Removes the newest note. Its blocks may be used again once the section has committed.
HF_TXFUNC bool tear_out(notebook* book) noexcept {
    note* torn = book->newest;
    if (torn == nullptr) return false;
    book->newest = torn->next;
    book->count -= 1;
    hf_free(torn->text);
    hf::destroy(torn);
    return true;
}
// [/tear-out]

void list(const notebook* book) {
    for (const note* n = book->newest; n != nullptr; n = n->next)
        std::printf("%.*s\n", static_cast<int>(n->bytes), n->text);
    std::printf("%lu notes\n", static_cast<unsigned long>(book->count));
}

} // namespace

int main(int argc, char** argv) {
    const std::string_view verb = argc > 2 ? argv[2] : "";
    const std::string_view text = argc > 3 ? argv[3] : "";
    if (verb != "list" && verb != "tear-out" && (text.empty() || (verb != "write" && verb != "write-long")))
        return std::fputs("usage: example_notebook FILE list|tear-out|write TEXT|write-long TEXT\n", stderr), 2;

    // [open]
    auto pool = hf::pool::open(argv[1], {.layout = "notebook/1"});
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().what().c_str()), 1;
    for (const std::string& line : pool->warnings()) std::fprintf(stderr, "%s\n", line.c_str());
    auto* book = pool->root<notebook>();
    // [/open]
    if (book == nullptr) return std::fputs("the pool is full\n", stderr), 1;

    bool done = true;
    if (verb == "write") {
        // [call]
        std::scoped_lock held{book->lock};   // held until the section has committed
        done = write(book, text.data(), text.size());
        // [/call]
    } else if (verb == "write-long") {
        done = write_long(*pool, book, text);
    } else if (verb == "tear-out") {
        std::scoped_lock held{book->lock};
        done = tear_out(book);
    } else {
        list(book);
    }
    return done ? 0 : 1;
}
