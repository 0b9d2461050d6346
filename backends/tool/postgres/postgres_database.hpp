// SPDX-License-Identifier: MIT
// A PostgreSQL database. The tool never creates or migrates its tables, and refuses those of another schema version.
// Messages never contain the URL, which may have a password.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "../any_store.hpp"
#include "../arguments.hpp"
#include "../database.hpp"

namespace tool {

class postgres_database final : public database {
  public:
    /// Throws `vouch::error` if the server cannot be reached or refuses the role.
    explicit postgres_database(const arguments& with)
        : url_(with.location), prefix_(with.prefix),
          connection_(vouch::postgres::detail::connect(checked(url_), {.limit = std::chrono::seconds{10}})),
          version_(vouch::postgres::stored_schema_version(connection_.get(), prefix_)) {}

    [[nodiscard]] std::int64_t our_version() const override { return vouch::postgres::schema_version; }
    [[nodiscard]] std::optional<std::int64_t> version() const override { return version_; }

    /// How the schema differs from the one that this program needs; empty if it does not.
    [[nodiscard]] std::string difference() const override {
        if (!version_) {
            return "the database has no tables with the prefix " + prefix_ +
                   "; name another with --prefix, or let the application create them by opening a store";
        }
        const auto stored = "the tables have schema version " + std::to_string(*version_);
        const auto ours = std::to_string(our_version());
        if (*version_ < our_version()) {
            return stored + ", older than " + ours +
                   ", which this program needs; nothing was read or changed. Migrate them with "
                   "vouch::postgres::migrate, or use the `vouch` tool of the application's version";
        }
        return *version_ == our_version() ? std::string()
                                          : stored + ", newer than " + ours +
                                                ", the newest that this program supports; nothing was read or changed. "
                                                "Use the `vouch` tool of the application's version";
    }

    [[nodiscard]] std::vector<std::string> queues() const override {
        return vouch::postgres::queue_names(connection_.get(), prefix_);
    }

    /// The contract has no query by lane, and reading all live entries would take minutes for a million.
    [[nodiscard]] std::optional<vouch::entry> head_of_lane(const vouch::entry& e) override {
        if (e.lane.empty()) {
            return std::nullopt;
        }
        const auto head = vouch::postgres::head_of_lane(connection_.get(), {e.queue, e.lane}, prefix_);
        return head && *head != e.id ? stored().find(*head) : std::nullopt;
    }

    [[nodiscard]] std::vector<vouch::id> ids_between(const vouch::id& first, const vouch::id& last,
                                                     std::size_t limit) override {
        return vouch::postgres::ids_between(connection_.get(), {first, last, limit}, prefix_);
    }

    [[nodiscard]] const stored_entries& stored() override { return store(); }

    [[nodiscard]] any_store& store() override {
        if (!store_) {
            if (const auto wrong = difference(); !wrong.empty()) {
                throw vouch::error(vouch::error_kind::unsupported, wrong);
            }
            tables_.emplace(url_, vouch::postgres::options{.prefix = prefix_, .create = false, .listen = false});
            store_.emplace(*tables_);
        }
        return *store_;
    }

    [[nodiscard]] std::vector<vouch::attempt_line> history_of(const vouch::id& which) override {
        return vouch::postgres::history_of(connection_.get(), which, prefix_);
    }

    void back_up(const std::string&) override {
        throw failure(refused, "backup is for SQLite files; PostgreSQL has pg_dump and pg_basebackup");
    }

  private:
    [[nodiscard]] static const std::string& checked(const std::string& url) {
        vouch::postgres::detail::validate_conninfo(url);
        return url;
    }

    std::string url_;
    std::string prefix_;
    vouch::postgres::detail::owned_connection connection_;
    std::optional<std::int64_t> version_;
    std::optional<vouch::postgres::store> tables_{};
    std::optional<works_on<vouch::postgres::store>> store_{};
};

} // namespace tool
