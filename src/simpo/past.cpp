// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeping the calls of an object, and going back to one of them.
#include <base/assert.hpp>
#include <pool/file_checks.hpp>
#include <simpo/functions.hpp>
#include <simpo/objects.hpp>
#include <simpo/packing.hpp>
#include <simpo/past.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <system_error>
#include <tuple>
#include <unistd.h>

namespace hf::simpo {

std::vector<record> logged_calls(const object_head& head, const std::byte* log) {
    std::vector<record> out;
    std::size_t whole = 0; // groups
    const position from = position_of(head.resilient), limit = from + head.log_lines;
    record r;
    for (position p = from; p < limit && log_array::read(log, head, head.logged, p, r);
         p += r.lines()) {
        out.push_back(r);
        if (ends_group(r.head.kind)) whole = out.size();
    }
    out.resize(whole);
    return out;
}

status for_each_past_call(
    past_source& of, std::byte* copy,
    const std::function<bool(const record&, std::string_view, bool in_pool)>& visit) {
    bool goes_on = true;
    const auto kept = [&](const record& r, std::string_view signature) {
        return goes_on = visit(r, signature, false);
    };
    if (status s = of.file.read(of.pool, of.packing, copy, kept); !s.ok() || !goes_on) return s;
    if (of.file.end() < of.from)
        return refusal(
            of.file.path(), errc::corrupt,
            fmt::format("expected the calls up to position {} of the object, found those "
                        "up to {}: {} calls",
                        of.from, of.file.end(), of.file.calls()));
    for (const record& r : of.logged) {
        if (r.head.position < of.file.end()) continue; // (2) of history.hpp
        const detail::function* const f =
            r.head.function == 0 ? nullptr : find_function(of.head, r.head);
        if (!visit(r, f == nullptr ? std::string() : signature_of(*f), true)) break;
    }
    return {};
}

result<std::vector<past_call>> past_calls(past_source& of) {
    std::vector<past_call> out;
    // The file names functions that this build does not have.
    std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint16_t>, std::string> named;
    const auto visit = [&](const record& r, std::string_view signature, bool in_pool) {
        if (r.head.function == 0) return true;
        std::string& name = named[{r.head.function, r.head.schema, r.head.version}];
        if (name.empty()) name = signature;
        signature = name;
        const bool has_caller = operation_words(r.head.kind) != 0;
        out.push_back({out.size() + 1, std::string(signature.substr(0, signature.find('('))),
                       r.head.function, r.head.version, sizeof r.head + r.words() * word_bytes,
                       !ends_group(r.head.kind), has_caller ? r.arguments[0] : 0,
                       has_caller ? r.arguments[1] : 0, readable(signature, r), in_pool});
        return true;
    };
    if (status s = for_each_past_call(of, nullptr, visit); !s.ok()) return s;
    return out;
}

namespace {

/// Lets POOL.history be the folder that the user named.
status name_folder(const std::string& pool, std::string link, const std::string& folder) {
    namespace fs = std::filesystem;
    link.pop_back(); // the slash
    std::error_code failed;
    const auto refuse = [&](const std::string& path, const char* what) {
        const bool may_not =
            failed == std::errc::permission_denied || failed == std::errc::read_only_file_system;
        return refusal(path, may_not ? errc::permission : errc::io_error,
                       fmt::format("keep_history: {}: {}", what, failed.message()));
    };
    if (folder.empty()) {
        fs::create_directory(link, failed);
        return failed ? refuse(link, "the folder") : status{};
    }
    const fs::path whole = fs::absolute(folder, failed);
    if (!failed) fs::create_directory(whole, failed);
    if (failed) return refuse(folder, "the folder");
    if (fs::symlink_status(link, failed).type() == fs::file_type::not_found) {
        failed.clear();
        fs::create_directory_symlink(whole, link, failed);
        return failed ? refuse(link, "the link to the folder") : status{};
    }
    failed.clear();
    if (fs::equivalent(link, whole, failed)) return {};
    const fs::path there = fs::canonical(link, failed);
    return refusal(
        pool, errc::exists,
        fmt::format("keep_history: expected {} to lead to {}, found {}: move the folder, "
                    "and the link, while the pool is closed",
                    link, whole.string(), failed ? "nothing" : there.string()));
}

} // namespace

status objects::keep_history(std::string_view name, const history_options& how) {
    if (status s = usable(true); !s.ok()) return s;
    const pool_file& file = *pool_->file;
    if (file.own_file() == nullptr)
        return refusal(file.path(), errc::bad_argument,
                       "keep_history: expected a pool in a file, found an image in memory");
    if (how.packing != nullptr && !can_be_named(*how.packing))
        return refusal(file.path(), errc::bad_argument,
                       fmt::format("history_options::packing: expected a name of 1 to {} bytes, "
                                   "found {}",
                                   sizeof(packing_name) - 1, std::strlen(how.packing->name())));
    std::unique_lock held{lock_};
    const auto it = place_of(name);
    if (it == all_.end()) return no_object(name);
    detail::core& of = **it;
    const detail::core::pin stays(of);
    held.unlock();
    if (status s = of.come_back(); !s.ok()) return s;
    const std::string link = history_file::folder_of(file.own_file()->full_path());
    if (status s = name_folder(file.path(), link, how.folder); !s.ok()) return s;
    return of.keep_history(how.packing);
}

status objects::end_history(std::string_view name) {
    if (status s = usable(true); !s.ok()) return s;
    std::unique_lock held{lock_};
    const auto it = place_of(name);
    if (it == all_.end()) return no_object(name);
    detail::core& of = **it;
    const detail::core::pin stays(of);
    held.unlock();
    if (status s = of.come_back(); !s.ok()) return s;
    return of.end_history();
}

result<past_source> objects::past(std::string_view name, const detail::class_shape* what,
                                  const compression* packing) {
    if (status s = usable(false); !s.ok()) return s;
    const pool_file& file = *pool_->file;
    std::unique_lock held{lock_};
    const auto it = place_of(name);
    if (it == all_.end()) return no_object(name);
    detail::core& of = **it;
    if (what != nullptr)
        if (status s = check_shape(file, of.head(), *what); !s.ok()) return s;
    const detail::core::pin stays(of);
    held.unlock();
    position from = 0;
    std::vector<record> logged;
    const auto its = of.copy_log(from, logged);
    if (!its)
        return refusal(file.path(), errc::not_found,
                       fmt::format("object \"{}\" has no history: keep_history begins one", name));
    const auto uuid = uuid_of(file.path(), *file.own_file());
    if (!uuid) return uuid.error();
    return past_source{
        *its,     *uuid, packing == nullptr ? its->packing() : packing, from, std::move(logged),
        of.head()};
}

namespace detail {

status core::keep_history(const compression* packing) {
    check_usable("keep_history");
    const held here(*this);
    be_here();
    if (history_ == nullptr) {
        serve();
        pm().promise(); // the file may be durable before the pool
        object_head its = *head_;
        its.history = log_.done() + 1;
        auto made = std::make_unique<history_file>(pool_->file->own_file()->full_path(), its);
        made->pack_with(packing);
        if (status s = made->create(*pool_->file->own_file(), its, working_.get(), log_.done());
            !s.ok())
            return s;
        pm().store_word(&head_->history, its.history);
        pm().fence();
        pm().promise();
        history_ = std::move(made);
    }
    history_->pack_with(packing);
    return {};
}

status core::end_history() {
    check_usable("end_history");
    const held here(*this);
    be_here();
    if (history_ == nullptr)
        return refusal(pool_->file->path(), errc::not_found,
                       fmt::format("object \"{}\" has no history", head_->name));
    forget_history();
    return {};
}

/// Requires: the lock.
void core::forget_history() {
    pm().store_word(&head_->history, 0);
    pm().fence();
    pm().promise(); // before the file goes
    history_->remove();
    history_.reset();
}

/// Upholds (7): the calls below 'end' that are not in the history go there. It ends at 'to' then.
/// Requires: the lock; they are durable.
status core::keep_calls(position end, position to) try {
    HF_ASSERT(history_->end() <= to && end <= to);
    if (history_->end() == to) return {};
    history_file::writing pieces(*history_);
    record r;
    for (position p = position_of(head_->resilient); p < end; p += r.lines()) {
        const bool read = log_array::read(log_.lines(), *head_, head_->logged, p, r);
        HF_ASSERT(read);
        if (p >= history_->end()) // (2) of history.hpp
            pieces.add(r, r.head.function == 0 || pieces.names(r.head)
                              ? nullptr
                              : find_function(*head_, r.head));
    }
    return pieces.end(to, !pm().keeps_order());
} catch (const std::bad_alloc&) {
    return out_of_memory(pool_->file->path());
}

status core::keep_all_calls() {
    if (history_ == nullptr) return {};
    pm().promise();
    return keep_calls(log_.done(), log_.done());
}

status core::move_history(position anew) {
    if (history_ == nullptr) return {};
    if (status s = history_->find_end(*pool_->file->own_file()); !s.ok()) return s;
    const position end = history_->end(), here = position_of(head_->resilient);
    if (end != here && end != anew)
        return refusal(history_->path(), errc::corrupt,
                       fmt::format("expected the calls up to position {} of object \"{}\", found "
                                   "those up to {}",
                                   here, head_->name, end));
    if (end == anew) return {}; // a process was killed in between
    history_file::writing pieces(*history_);
    return pieces.end(anew, !pm().keeps_order());
}

std::optional<history_file> core::copy_log(position& from, std::vector<record>& to) {
    check_usable("history");
    const held here(*this);
    if (history_ == nullptr) return {};
    from = position_of(head_->resilient);
    if (swapped()) return *history_;
    if (!pool_->file->read_only()) make_pending();
    position end = log_.done();
    if (left_)
        from = left_->from, end = left_->end; // recovery has made them for this process alone
    record r;
    for (position p = from; p < end; p += r.lines()) {
        const bool read = log_array::read(log_.lines(), *head_, head_->logged, p, r);
        HF_ASSERT(read);
        to.push_back(r);
    }
    return *history_;
}

void free_past::operator()(void* memory) const noexcept {
    ::operator delete(memory, std::align_val_t{line_bytes});
}

result<past_memory> look_back(pool& in, std::string_view name, const class_shape& what,
                              std::uint64_t calls, const compression* packing) try {
    const result<objects*> all = objects_of(in);
    if (!all) return all.error();
    auto from = (*all)->past(name, &what, packing);
    if (!from) return from.error();
    past_memory made(
        ::operator new(layout_of(from->head).copy_bytes, std::align_val_t{line_bytes}));
    auto* const copy = static_cast<std::byte*>(made.get());
    std::uint64_t done = 0;
    std::string unknown;
    const auto visit = [&](const record& r, std::string_view, bool) {
        if (done == calls) return false;
        const function* const f =
            r.head.function == 0 ? nullptr : find_function(from->head, r.head, &unknown);
        if (r.head.function != 0 && f == nullptr) return false;
        make_call(copy, from->head, r, f);
        done += f != nullptr;
        return true;
    };
    if (status s = for_each_past_call(*from, copy, visit); !s.ok()) return s;
    if (!unknown.empty())
        return refusal(in.path(), errc::function_changed,
                       fmt::format("object \"{}\": call {} of its history: expected a function of "
                                   "this build, found {}",
                                   name, done + 1, unknown));
    if (done != calls)
        return refusal(in.path(), errc::bad_argument,
                       fmt::format("object \"{}\": expected 0 to {} calls, as many as its history "
                                   "has, found {}",
                                   name, done, calls));
    return made;
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

} // namespace detail

status keep_history(pool& in, std::string_view name, const history_options& how) try {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->keep_history(name, how) : all.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

status end_history(pool& in, std::string_view name) {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->end_history(name) : all.error();
}

result<std::vector<past_call>> history(pool& in, std::string_view name,
                                       const compression* packing) try {
    const result<objects*> all = objects_of(in);
    if (!all) return all.error();
    auto from = (*all)->past(name, nullptr, packing);
    return from ? past_calls(*from) : from.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

} // namespace hf::simpo
