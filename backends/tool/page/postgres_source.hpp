// SPDX-License-Identifier: MIT
// A PostgreSQL database for the page. Tables are never created or migrated. Messages never contain the URL, which may
// have a password.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

#include <vouch/page.hpp>
#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

namespace tool {

class postgres_source {
  public:
    /// Throws `vouch::error` if the server cannot be reached, refuses the role, or has tables of another schema.
    postgres_source(const std::string& url, const std::string& prefix)
        : url_(url), prefix_(prefix),
          store_(url, vouch::postgres::options{.prefix = prefix, .create = false, .listen = false}) {}

    [[nodiscard]] vouch::postgres::store& store() { return store_; }

    [[nodiscard]] vouch::page::options about() {
        return {.name = on_connection([](PGconn* c) { return std::string("PostgreSQL ") + PQdb(c); }),
                .queues =
                    [this] {
                        return on_connection([this](PGconn* c) { return vouch::postgres::queue_names(c, prefix_); });
                    },
                .head_of_lane = [this](const vouch::entry& e) { return head_of_lane(e); }};
    }

  private:
    [[nodiscard]] std::optional<vouch::entry> head_of_lane(const vouch::entry& e) {
        const auto head = on_connection(
            [&](PGconn* c) { return vouch::postgres::head_of_lane(c, {.queue = e.queue, .lane = e.lane}, prefix_); });
        return head && *head != e.id ? store_.find(*head) : std::nullopt;
    }

    /// One connection for what the contract does not tell. After an error, the next call connects again.
    template <class Read>
    std::invoke_result_t<const Read&, PGconn*> on_connection(const Read& read) {
        const std::lock_guard lock(mutex_);
        try {
            if (!connection_) {
                connection_ = vouch::postgres::detail::connect(url_, {.limit = std::chrono::seconds{10}});
            }
            return read(connection_.get());
        } catch (const vouch::error&) {
            connection_.reset();
            throw;
        }
    }

    std::string url_;
    std::string prefix_;
    vouch::postgres::store store_;
    std::mutex mutex_{};
    vouch::postgres::detail::owned_connection connection_{};
};

} // namespace tool
