// SPDX-License-Identifier: MIT
// A request and a response of HTTP as plain values, so that any server can be used.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace page {

/// Names and values, in the order given. The names of headers are compared without regard to case.
using field_list = std::vector<std::pair<std::string, std::string>>;

struct request {
    std::string method = "GET"; ///< in upper case
    std::string path = "/";     ///< before the `?`, as the client sent it
    std::string query{};        ///< after the `?`, as the client sent it, without the `?`
    field_list headers{};       ///< at least Host, Origin, Sec-Fetch-Site and Authorization, if the client sent them
    std::string body{};
};

struct response {
    int status = 200;
    std::string content_type{};
    field_list headers{}; ///< to be sent as they are, beside Content-Type and Content-Length
    std::string body{};
};

} // namespace page
} // namespace v0
} // namespace vouch
