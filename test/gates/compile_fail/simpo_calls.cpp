// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that cannot be deferred, or logged at all.
#include <holdfast/simpo.hpp>

#include <array>
#include <string>
#include <string_view>

struct cells {
    static constexpr hf::simpo::class_name simpo_class{"cells", 1};
    int sum() noexcept { return all[0]; }
    void look() const noexcept {}
    void throws(int) {}
    void by_reference(int&) noexcept {}
    void by_string(std::string) noexcept {}
    void by_view(std::string_view) noexcept {}
    void by_pointer(const int*) noexcept {}
    void wide(std::array<int, 200>) noexcept {}
    int& first() noexcept { return all[0]; }
    std::array<int, 8> all{};
};

void use(hf::simpo::object<cells> it, int n) {
    it.defer<&cells::sum>();                              // error in a header: a deferred function returns nothing
    it.defer<&cells::look>();                             // error in a header: a deferred function changes the object
    it.defer<&cells::throws>(n);                          // error in a header: a logged function is noexcept
    it.defer<&cells::by_reference>(n);                    // error in a header: a logged function takes values
    it.defer<&cells::by_string>("text");                  // error in a header: is kept as bytes
    it.defer<&cells::by_view>("text");                    // error in a header: is no address
    it.defer<&cells::by_pointer>(&n);                     // error in a header: is no address
    it.defer<&cells::wide>(std::array<int, 200>{});       // error in a header: at most 60 words
    (void)it.call<&cells::first>();                       // error in a header: no references, no pointers
}
