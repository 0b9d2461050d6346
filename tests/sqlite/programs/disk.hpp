// SPDX-License-Identifier: MIT
// A disk that can lose power. Each file has a durable image and the changes since its last sync. A power cut discards
// the unsynced changes, or keeps some of them: each sector of 512 bytes comes back as it was after some of its changes,
// independently of its neighbours. Synced bytes are never damaged.
//
// A created file is durable at once. A deleted file may come back until the folder is synced, which happens at the
// deletion or with the first sync of a fresh log or journal, as SQLite does on Unix.
//
// Not safe for concurrent use.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sqlite_test {

class disk {
  public:
    /// The request during which the power is cut.
    enum class request : std::uint8_t { nothing, write_log, write_database, sync_log, sync_database, cut_short };
    static constexpr std::array all_requests{request::nothing,  request::write_log,     request::write_database,
                                             request::sync_log, request::sync_database, request::cut_short};

    enum class kind : std::uint8_t { database, journal, log };

    class file {
      public:
        explicit file(kind as) : kind_(as) {}

        [[nodiscard]] std::string_view bytes() const noexcept { return live_; }

      private:
        friend class disk;
        struct change {
            std::size_t at = 0;
            std::string bytes{};
            bool cuts_short = false; ///< to the size `at`
        };

        static void put(std::string& to, std::size_t at, std::string_view bytes) {
            to.resize(std::max(to.size(), at + bytes.size()));
            to.replace(at, bytes.size(), bytes);
        }
        static void apply(std::string& to, const change& c) { c.cuts_short ? to.resize(c.at) : put(to, c.at, c.bytes); }

        kind kind_;
        bool is_fresh_ = true;
        std::string durable_{};
        std::string live_{};
        std::vector<change> unsynced_{};
    };

    explicit disk(std::uint64_t seed) : random_(seed) {}

    // Files.

    [[nodiscard]] std::shared_ptr<file> find(const std::string& name) const {
        const auto found = files_.find(name);
        return found == files_.end() ? nullptr : found->second;
    }
    [[nodiscard]] std::shared_ptr<file> create(const std::string& name, kind as) {
        deleted_.erase(name);
        return files_[name] = std::make_shared<file>(as);
    }
    void remove(const std::string& name, bool for_good) {
        if (auto gone = files_.extract(name); gone && !for_good) {
            deleted_.insert(std::move(gone));
        }
    }

    // Requests. Each returns whether it succeeded. A failed request may have taken effect.

    [[nodiscard]] bool write(file& f, std::size_t at, std::string_view bytes) {
        return change(f, f.kind_ == kind::log ? request::write_log : request::write_database, {at, std::string(bytes)});
    }
    [[nodiscard]] bool truncate(file& f, std::size_t size) { return change(f, request::cut_short, {size, {}, true}); }
    [[nodiscard]] bool sync(file& f) {
        return carry_out(f.kind_ == kind::log ? request::sync_log : request::sync_database, [&] {
            for (const auto& c : f.unsynced_) {
                file::apply(f.durable_, c);
            }
            f.unsynced_.clear();
            if (std::exchange(f.is_fresh_, false) && f.kind_ != kind::database) {
                deleted_.clear();
            }
        });
    }

    // Power.

    [[nodiscard]] bool has_power() const noexcept { return has_power_; }
    /// Cuts the power at the `count`-th request of this kind from now on.
    void cut_after(request what, std::uint64_t count) noexcept {
        cut_wanted_ = what;
        requests_left_ = count;
    }
    void cut_now() noexcept { has_power_ = false; }
    /// Makes the next request of this kind fail without a power cut. `nothing` cancels that.
    void fail_next(request what) noexcept { fail_wanted_ = what; }
    [[nodiscard]] request cut_at() const noexcept { return cut_at_; }

    /// Restores the power with what the disk kept. Requires that no file is open.
    void reboot() {
        const bool forgets_all = below(3) == 0;
        for (auto& [name, image] : deleted_) {
            if (below(2) == 0 && !files_.contains(name)) {
                files_[name] = image;
            }
        }
        deleted_.clear();
        for (auto& [name, image] : files_) {
            if (!forgets_all) {
                keep_some(*image);
            }
            image->unsynced_.clear();
            image->live_ = image->durable_;
        }
        has_power_ = true;
        cut_wanted_ = cut_at_ = request::nothing;
    }

    /// A disk with the same bytes and nothing unsynced.
    [[nodiscard]] disk copy() const {
        disk out(0);
        for (const auto& [name, image] : files_) {
            out.files_[name] = std::make_shared<file>(*image);
        }
        return out;
    }

  private:
    template <class Effect>
    [[nodiscard]] bool carry_out(request what, Effect&& effect) {
        if (!has_power_) {
            return false;
        }
        if (what == fail_wanted_) {
            fail_wanted_ = request::nothing;
            if (below(2) == 0) {
                effect(); // takes effect, but reports failure
            }
            return false;
        }
        if (what != cut_wanted_ || requests_left_-- > 1) {
            effect();
            return true;
        }
        has_power_ = false;
        cut_at_ = what;
        if (below(2) == 0) {
            effect(); // takes effect, but the caller never learns it
        }
        return false;
    }

    [[nodiscard]] bool change(file& f, request what, file::change c) {
        return carry_out(what, [&] {
            file::apply(f.live_, c);
            f.unsynced_.push_back(std::move(c));
        });
    }

    /// Makes a random part of the unsynced changes durable, as if written back before the cut.
    void keep_some(file& f) {
        constexpr std::size_t sector_size = 512;
        const auto count = f.unsynced_.size();
        const auto draw = [&]() -> std::size_t {
            switch (below(3)) {
            case 0: return 0;
            case 1: return count;
            default: return below(count + 1);
            }
        };
        const auto sizes_kept = draw();
        std::map<std::size_t, std::size_t> kept; // by sector: how many of the changes it keeps
        for (std::size_t i = 0; i < count; ++i) {
            const auto& c = f.unsynced_[i];
            if (c.cuts_short && i < sizes_kept) {
                f.durable_.resize(c.at);
            }
            for (std::size_t done = 0; done < c.bytes.size();) {
                const auto sector = (c.at + done) / sector_size;
                const auto part = std::min(c.bytes.size() - done, (sector + 1) * sector_size - c.at - done);
                const auto known = kept.find(sector);
                if (i < (known == kept.end() ? kept.emplace(sector, draw()).first : known)->second) {
                    file::put(f.durable_, c.at + done, std::string_view(c.bytes).substr(done, part));
                }
                done += part;
            }
        }
    }

    [[nodiscard]] std::size_t below(std::size_t limit) { return random_() % limit; }

    std::mt19937_64 random_;
    std::map<std::string, std::shared_ptr<file>> files_{};
    std::map<std::string, std::shared_ptr<file>> deleted_{};
    bool has_power_ = true;
    request cut_wanted_ = request::nothing;
    request fail_wanted_ = request::nothing;
    std::uint64_t requests_left_ = 0;
    request cut_at_ = request::nothing;
};

[[nodiscard]] constexpr std::string_view name_of(disk::request r) noexcept {
    switch (r) {
    case disk::request::nothing: return "at rest";
    case disk::request::write_log: return "writing the log";
    case disk::request::write_database: return "writing the database";
    case disk::request::sync_log: return "syncing the log";
    case disk::request::sync_database: return "syncing the database";
    case disk::request::cut_short: return "truncating a file";
    }
    return "?";
}

} // namespace sqlite_test
