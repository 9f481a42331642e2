// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the guard's test calls from sections, in a file that the plugin does not see and that does
// not know of the promise.
namespace language_test {

long stores_elsewhere(long* where) noexcept;
long stores_elsewhere(long* where) noexcept { return *where = 1; }

} // namespace language_test
