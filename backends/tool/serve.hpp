// SPDX-License-Identifier: MIT
// `vouch serve`: the operator's page over HTTP, beside running workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arguments.hpp"

namespace tool {

struct serve_request {
    std::string location{}; ///< of the store: a file or a URL
    std::string prefix = "vouch_";
    std::string host = "127.0.0.1";   ///< the address to listen on
    std::uint16_t port = 8080;        ///< 0: any that is free
    std::vector<std::string> names{}; ///< under which browsers reach it, beside the address
    std::string token{};
    bool read_only = false;
};

/// Reads the arguments and VOUCH_TOKEN. Throws `bad_usage` if they do not make sense.
[[nodiscard]] serve_request serve_request_of(const arguments& with);

/// Serves until SIGINT or SIGTERM. Returns the exit code. Throws `vouch::error` if the store cannot be opened or the address
/// cannot be used.
int serve(const serve_request& with);

} // namespace tool
