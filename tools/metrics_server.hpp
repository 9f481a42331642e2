// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metrics in Prometheus' text format 0.0.4, by HTTP: one page, /metrics, which is made at each
// request.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace hf::tools {

/// A page that grows. Every metric has the same labels, and one value.
class metrics_page {
public:
    using label = std::pair<std::string_view, std::string_view>;
    explicit metrics_page(std::initializer_list<label> common);

    /// `kind`: "gauge" or "counter", whose name ends in _total.
    void add(std::string_view name, std::string_view kind, std::string_view help, double value,
             std::initializer_list<label> more = {});
    const std::string& text() const noexcept { return text_; }

private:
    static std::string labels(std::initializer_list<label> of);
    std::string common_, text_;
};

/// What is wrong with "ADDRESS:PORT", or nothing. An address of version 6 stands in brackets.
std::string wrong_in_address(const std::string& address);
/// Answers until the process is ended. Says the address and the port when it listens, which is
/// another one for port 0. No TLS, and no passwords.
///
/// Errors: why it cannot listen there.
std::string serve_metrics(const std::string& address, const std::function<std::string()>& page);

} // namespace hf::tools
