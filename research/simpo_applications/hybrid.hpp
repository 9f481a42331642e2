// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMPO's variant 'hybrid' (Table 7) for any application: each call is made at once, under a lock,
// and logged; every 1000 calls the log is flushed, and the whole object written to the copy that
// does not count. Figs. 18 to 21.
#pragma once

#include <base/line.hpp>
#include <pool/medium.hpp>
#include <simpo/log_array.hpp>

#include <holdfast/simpo.hpp>

#include <bench/simpo/checkpoints.hpp>
#include <bench/temporary_file.hpp>

#include <bit>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace hf::bench {

template <class T> class hybrid_object {
public:
    hybrid_object(std::unique_ptr<T> of, domain d, const std::string& directory)
        : all_(std::make_shared<state>(std::move(of), d, directory)) {}
    template <auto F, class... Args> void defer(Args&&... args) {
        (void)call<F>(std::forward<Args>(args)...);
    }
    template <auto F, class... Args> auto call(Args&&... args) {
        using traits = simpo::detail::member_function<decltype(F)>;
        const std::scoped_lock held{all_->lock};
        T& object = *all_->object;
        if constexpr (traits::is_const) {
            return (object.*F)(std::forward<Args>(args)...);
        } else {
            const auto words = traits::arguments::store(args...);
            all_->log(simpo::detail::registered<T, F>::entry, words.data());
            const called then{*all_};
            return (object.*F)(std::forward<Args>(args)...);
        }
    }
    void sync() {} // by the next 1000 calls
    void checkpoint() { all_->checkpoint(); }
    /// The object as an open after a crash would find it. Requires: checkpoint().
    const T& durable() const {
        return *std::launder(reinterpret_cast<const T*>(all_->scheme->recovered()));
    }

private:
    static constexpr std::uint64_t calls_a_checkpoint = 1000;
    static constexpr std::size_t image_bytes = round_up(sizeof(T), line_bytes);
    struct state {
        state(std::unique_ptr<T> of, domain d, const std::string& directory)
            : object(std::move(of)),
              image(new(std::align_val_t{line_bytes}) std::byte[image_bytes]()) {
            constexpr std::uint64_t lines =
                std::bit_ceil(2 * calls_a_checkpoint * simpo::record_lines_max);
            mapped_bytes =
                memory_for(image_bytes) + sizeof(simpo::object_head) + lines * line_bytes;
            const temporary_file file(directory, "simpo-hybrid");
            const int fd = ::open(file.path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
            if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(mapped_bytes)) != 0)
                give_up("cannot write " + file.path());
            void* const at = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_POPULATE, fd, 0);
            ::close(fd);
            if (at == MAP_FAILED) give_up("cannot map " + file.path());
            memory = static_cast<std::byte*>(at);
            auto* const head = ::new (memory + memory_for(image_bytes)) simpo::object_head{};
            head->log_lines = lines; // they lie behind it
            records = std::make_unique<simpo::log_array>(medium(d), *head, false);
            scheme = make_scheme("dual", medium(d), memory, image_bytes, {});
        }
        ~state() {
            scheme.reset();
            ::munmap(memory, mapped_bytes);
        }
        state(const state&) = delete;
        void log(const simpo::detail::function& f, const std::uint64_t* arguments) {
            if (!records->append(simpo::record_kind::deferred, &f, arguments))
                give_up("hybrid: a log of two checkpoints' calls is full");
        }
        void checkpoint() {
            records->commit(records->head(), records->head());
            std::memcpy(image.get(), static_cast<const void*>(object.get()), sizeof(T));
            scheme->write(image.get());
            records->set_done(records->head());
            records->set_resilient(records->head());
        }
        struct free_image {
            void operator()(std::byte* at) const noexcept {
                ::operator delete[](at, std::align_val_t{line_bytes});
            }
        };
        std::mutex lock;
        std::unique_ptr<T> object;
        std::unique_ptr<std::byte[], free_image> image; // in whole lines
        std::uint64_t calls = 0, mapped_bytes = 0;
        std::byte* memory = nullptr;
        std::unique_ptr<simpo::log_array> records;
        std::unique_ptr<checkpoint_scheme> scheme;
    };
    struct called {
        state& of;
        ~called() {
            if (++of.calls % calls_a_checkpoint == 0) of.checkpoint();
        }
    };
    std::shared_ptr<state> all_;
};

} // namespace hf::bench
