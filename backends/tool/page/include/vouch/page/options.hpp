// SPDX-License-Identifier: MIT
// How a page is offered: under which path, to whom, and what the store's contract does not tell.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/observe/metrics.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/id_source.hpp>

namespace vouch {
inline namespace v0 {
namespace page {

/// Every member has a usable default. The default is for a server that listens on loopback, and changes nothing.
struct options {
    std::string name{};      ///< of the store, for people
    std::string mount = "/"; ///< the path under which the page is offered; begins and ends with a slash

    /// The secret of those who may change entries. Empty: no request changes anything.
    std::string token{};
    bool token_to_read = false; ///< whether reading needs the token too; set it unless only this machine can connect
    bool read_only = false;     ///< refuse every change, whatever the token
    bool payloads = true;       ///< whether payloads, results and progress are shown; they may be confidential
    /// The values of the Host header that are answered, such as `ops.example.com` or `10.0.0.7:8080`. Empty: those of
    /// loopback, with any port. Without this check, a page of another site could read entries by DNS rebinding.
    std::vector<std::string> hosts{};

    /// The names of the queues. Empty: the store's own `queues()`, which a store need not have.
    std::function<std::vector<std::string>()> queues{};
    /// The live entry that blocks this one in its lane. Empty: it is sought among the oldest live entries of the queue.
    std::function<std::optional<entry>(const entry&)> head_of_lane{};
    /// The metrics of the application, which /metrics then shows too. Must outlive the site.
    vouch::metrics* metrics = nullptr;

    /// When a live entry that does not change counts as stuck; see `look_options::stuck_after`.
    duration stuck_after = std::chrono::minutes{5};
    /// Whether requests count the queues, in at most a fiftieth of the time. If not, call `site::look` every second.
    bool look_in_requests = true;
    std::size_t read_max = 1000; ///< entries that one request reads

    vouch::clock now = system_now;
    id_source ids = uuid7_source();
};

} // namespace page
} // namespace v0
} // namespace vouch
