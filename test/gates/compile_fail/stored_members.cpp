// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members that the next process cannot use, wherever a pool is asked to store them.
#include <holdfast/containers.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/migration.hpp>

#include <any>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <regex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <threads.h>
#include <tuple>
#include <typeindex>
#include <valarray>
#include <variant>
#include <vector>

struct person {
    int age;
};
// [bad]
struct order {
    long amount;
    std::shared_ptr<person> owner; // error: std::shared_ptr<person> keeps what it points to in volatile memory
};
// [/bad]
struct by_base : order {};
struct holder {
    std::unique_ptr<int> one;                  // error: 'holder::one' cannot live in a pool: std::unique_ptr<int>
    std::weak_ptr<int> watched;                // error: 'holder::watched' cannot live
    std::any whatever;                         // error: 'holder::whatever' cannot live
    std::string name;                          // error: use hf::string
    std::vector<int> numbers;                  // error: use hf::vector
    std::map<int, int> sorted;                 // error: use hf::map
    std::multiset<int> many;                   // error: give it hf::allocator
    std::pmr::vector<int> from_resource;       // error: keeps its elements in volatile memory
    std::function<int()> call;                 // error: keeps the address of code
    int (*code)(int);                          // error: keeps the address of code
    int (person::*method)();                   // error: keeps the address of code
    std::type_index kind;                      // error: keeps the address of code
    std::mutex lock;                           // error: use hf::mutex
    std::shared_mutex shared;                  // error: use hf::mutex
    pthread_mutex_t old_lock;                  // error: use hf::mutex
    std::condition_variable waiting;           // error: is a handle of this process
    std::filesystem::path where;               // error: 'holder::where' cannot live in a pool: std::filesystem::path
    std::regex pattern;                        // error: keeps what is its own in volatile memory
    std::valarray<int> values;                 // error: keeps what is its own in volatile memory
    std::error_code failure;                   // error: store the number alone
    mtx_t c_lock;                              // error: use hf::mutex
    std::thread worker;                        // error: is a handle of this process
    std::future<int> later;                    // error: is a handle of this process
    std::FILE* file;                           // error: leads to volatile memory
    std::string* elsewhere;                    // error: leads to volatile memory
    hf::pool* pool;                            // error: leads to volatile memory
    std::string_view view;                     // error: points to bytes of somebody else
    std::span<int> range;                      // error: points to bytes of somebody else
    std::reference_wrapper<int> referred;      // error: points to bytes of somebody else
    int& reference;                            // error: cannot be set anew
    std::array<std::string, 3> names;          // error: 'holder::names' cannot live
    std::optional<std::string_view> perhaps;   // error: 'holder::perhaps' cannot live
    std::pair<int, std::mutex> guarded;        // error: 'holder::guarded' cannot live
    std::variant<int, std::string> either;     // error: 'holder::either' cannot live
    std::tuple<int, std::vector<int>> several; // error: 'holder::several' cannot live
    std::mutex locks[4];                       // error: 'holder::locks' cannot live
    std::atomic<std::string_view> seen;        // error: 'holder::seen' cannot live
    hf::vector<std::string> texts;             // error: 'holder::texts' cannot live
    hf::map<int, std::vector<int>> lists;      // error: 'holder::lists' cannot live
    struct {
        std::thread inner; // error: is a handle of this process
    } nested;
};
struct shape {
    virtual ~shape() = default;
};
struct drawing {
    std::array<shape*, 2> shapes; // error: has virtual functions or bases
};
struct row {
    static constexpr hf::simpo::class_name simpo_class{"row", 1};
    const std::string* title; // error: leads to volatile memory
};
struct key {
    std::string_view text; // error: points to bytes of somebody else
};
// What holds none of the types that its arguments name.
// [accepted]
struct accepted {
    std::map<hf::string, int, std::less<std::string_view>, hf::allocator<std::pair<const hf::string, int>>> found_by_view;
    hf::unordered_map<hf::string, int, std::hash<std::string_view>, std::equal_to<std::string_view>> hashed_by_view;
};
// [/accepted]
struct old_root {
    std::mutex lock; // error: use hf::mutex
};

void ask(hf::pool& in, hf::migration& from) {
    (void)in.root<by_base>();
    (void)in.find_root<holder>();
    (void)in.find_root<accepted>();
    (void)hf::make_array<drawing>(3);
    (void)hf::simpo::object<row>::find(in, "it");
    (void)hf::mod::map<key, int>::open(in, {"keys"});
    (void)from.new_root<old_root>();
    (void)hf::make<std::recursive_mutex>(); // error: 'std::recursive_mutex' cannot live in a pool
}
