// SPDX-License-Identifier: MIT
// A SQLite file for the page. Without changes, the file is opened read-only. The file is never created or migrated.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <sqlite3.h>

#include <vouch/page.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "../sqlite/entry_view.hpp"

namespace tool {

/// A view for several threads, one at a time.
class locked_view {
  public:
    locked_view(sqlite3* through, const std::string& prefix, std::mutex& lock) : view_(through, prefix), lock_(lock) {}

    [[nodiscard]] auto find(const vouch::id& which) const {
        return locked([&] { return view_.find(which); });
    }
    [[nodiscard]] auto list(const vouch::query& q) const {
        return locked([&] { return view_.list(q); });
    }
    [[nodiscard]] auto counts(std::string_view queue) const {
        return locked([&] { return view_.counts(queue); });
    }
    [[nodiscard]] auto next_due(std::string_view queue) const {
        return locked([&] { return view_.next_due(queue); });
    }

  private:
    template <class Read>
    [[nodiscard]] std::invoke_result_t<const Read&> locked(const Read& read) const {
        const std::lock_guard lock(lock_);
        return read();
    }

    entry_view view_;
    std::mutex& lock_;
};

static_assert(vouch::reader<locked_view>);

class sqlite_source {
  public:
    /// Throws `vouch::error` if the file does not exist, is not a SQLite database, or has another schema.
    sqlite_source(const std::string& path, const std::string& prefix)
        : path_(path), prefix_(prefix), db_(open(path)), view_(checked(db_.get(), path, prefix), prefix, lock_) {}

    [[nodiscard]] locked_view& reader() { return view_; }
    [[nodiscard]] vouch::sqlite::store store() const {
        return vouch::sqlite::store(path_, {.prefix = prefix_, .create = false});
    }

    /// What the contract does not tell.
    [[nodiscard]] vouch::page::options about() {
        return {.name = std::filesystem::path(path_).filename().string(),
                .queues =
                    [this] {
                        const std::lock_guard lock(lock_);
                        return vouch::sqlite::queue_names(db_.get(), prefix_);
                    },
                .head_of_lane = [this](const vouch::entry& e) { return head_of_lane(e); }};
    }

  private:
    struct closer {
        void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
    };
    using handle = std::unique_ptr<sqlite3, closer>;

    [[nodiscard]] static handle open(const std::string& path) {
        sqlite3* opened = nullptr;
        const int rc = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
        handle out(opened);
        if (rc != SQLITE_OK) {
            throw vouch::error(vouch::error_kind::io, "cannot open " + path + ": " + sqlite3_errstr(rc), {.code = rc});
        }
        sqlite3_busy_timeout(opened, 5000);
        return out;
    }

    [[nodiscard]] static sqlite3* checked(sqlite3* db, const std::string& path, const std::string& prefix) {
        const auto stored = vouch::sqlite::stored_schema_version(db, prefix);
        if (!stored || *stored != vouch::sqlite::schema_version) {
            throw vouch::error(vouch::error_kind::unsupported,
                               path +
                                   (stored ? " has schema version " + std::to_string(*stored)
                                           : " has no tables with the prefix " + prefix) +
                                   "; `vouch schema` says what to do");
        }
        return db;
    }

    [[nodiscard]] std::optional<vouch::entry> head_of_lane(const vouch::entry& e) const {
        std::optional<vouch::id> head;
        {
            const std::lock_guard lock(lock_);
            const vouch::sqlite::detail::statement first(
                db_.get(), vouch::sqlite::detail::with_prefix(R"(SELECT e.id FROM @entries e WHERE e.sequence =
 (SELECT r.sequence FROM @relations r JOIN @queues q ON q.number = r.queue
 WHERE q.name = ?1 AND r.lane = ?2 AND r.is_live = 1 ORDER BY r.sequence LIMIT 1))",
                                                              prefix_));
            vouch::sqlite::detail::run row(first);
            if (row.bind(e.queue, e.lane).step()) {
                head.emplace();
                row.read_all(*head);
            }
        }
        return head && *head != e.id ? view_.find(*head) : std::nullopt;
    }

    std::string path_;
    std::string prefix_;
    mutable std::mutex lock_{};
    handle db_;
    locked_view view_;
};

} // namespace tool
