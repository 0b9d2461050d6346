// SPDX-License-Identifier: MIT
// Every commit of the writers with what the store said of it, and the comparison of all this with the table. Nothing that
// was said to be stored may be missing, nothing that was said to be absent may be there, and an entry is claimed a second
// time only after its lease.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "postgres/programs/fault_server.hpp"
#include "postgres/programs/findings.hpp"

namespace fault_program {

class ledger {
  public:
    void note_enqueue(const vouch::id& which, said what) {
        const std::lock_guard lock(mutex_);
        entries_[which].enqueued = what;
    }
    void note_claim(const vouch::entry& e, said what) {
        const std::lock_guard lock(mutex_);
        entries_[e.id].claims.push_back({e.epoch, *e.last_attempt_at, *e.lease_until, what});
    }
    /// A claim in doubt of at most `limit` entries, of which the caller has not heard which.
    void note_unheard_claim(std::size_t limit) {
        const std::lock_guard lock(mutex_);
        unheard_max_ += limit;
    }
    /// A settle that was answered `applied`, with the result that it has stored.
    void note_settle(const vouch::ticket& t, const std::string& result, said what) {
        const std::lock_guard lock(mutex_);
        entries_[t.id].settles.push_back({t.epoch, result, what});
    }
    /// Entries that were stored as ended (`change` above 0) or purged (below 0).
    void note_purgeable(long change, said what) {
        const std::lock_guard lock(mutex_);
        (change < 0 ? purged_ : kept_)[static_cast<std::size_t>(what)] += change;
    }

    /// Compares with the tables of the prefix, and prints the numbers.
    void compare(direct& on, const std::string& prefix) {
        const std::lock_guard lock(mutex_);
        const auto stored = read(on, prefix);
        for (const auto& [which, one] : entries_) {
            const auto found = stored.find(which);
            compare_enqueue(one, found != stored.end());
            if (found != stored.end()) {
                compare_claims(one, found->second);
                compare_settles(one, found->second);
            }
        }
        for (const auto& [which, row] : stored) {
            expect(entries_.contains(which), "every stored entry is one of the writers'");
        }
        expect(unheard_ <= unheard_max_, "a claim that was said to be absent is not there");
        compare_purged(on, prefix);
        compare_sums(on, prefix);
        print();
    }

  private:
    struct claim {
        std::uint64_t epoch = 0;
        vouch::time_point at{};
        vouch::time_point until{};
        said what = said::absent;
    };
    struct settle {
        std::uint64_t epoch = 0;
        std::string result{};
        said what = said::absent;
    };
    struct history {
        said enqueued = said::absent;
        std::vector<claim> claims{};
        std::vector<settle> settles{};
    };
    struct stored_row {
        std::uint64_t epoch = 0;
        bool has_succeeded = false;
        std::string result{};
    };

    [[nodiscard]] static std::map<vouch::id, stored_row> read(direct& on, const std::string& prefix) {
        std::map<vouch::id, stored_row> out;
        for (const auto& row : on.run("SELECT id, epoch, state, convert_from(coalesce(result, ''), 'UTF8') FROM " +
                                      prefix + "entries WHERE queue = 'work'")) {
            out[*vouch::id::parse(row[0])] = {std::stoull(row[1]), row[2] == "3", row[3]};
        }
        return out;
    }

    void compare_enqueue(const history& one, bool is_there) {
        enqueues_[static_cast<std::size_t>(one.enqueued)] += 1;
        expect(one.enqueued != said::stored || is_there, "an enqueue that was said to be stored is there");
        expect(one.enqueued != said::absent || !is_there, "an enqueue that was said to be absent is not there");
        landed_ += one.enqueued == said::in_doubt && is_there ? 1 : 0;
    }

    /// Each claim that is stored raises the epoch by one.
    void compare_claims(const history& one, const stored_row& row) {
        std::map<std::uint64_t, const claim*> stored;
        std::size_t in_doubt = 0;
        for (const auto& c : one.claims) {
            claims_[static_cast<std::size_t>(c.what)] += 1;
            in_doubt += c.what == said::in_doubt ? 1 : 0;
            if (c.what == said::stored) {
                expect(stored.emplace(c.epoch, &c).second, "no two claims of an entry are stored with one epoch");
            }
        }
        expect(row.epoch >= stored.size(), "a claim that was said to be stored is there");
        const auto known = stored.size() + in_doubt;
        unheard_ += row.epoch > known ? row.epoch - known : 0;
        const claim* before = nullptr;
        for (const auto& [epoch, c] : stored) {
            expect(epoch <= row.epoch, "a claim that was said to be stored is there");
            expect(before == nullptr || c->at >= before->until, "an entry is claimed again only after its lease");
            before = c;
        }
        again_ += stored.size() > 1 ? stored.size() - 1 : 0;
    }

    void compare_settles(const history& one, const stored_row& row) {
        std::size_t stored = 0;
        for (const auto& s : one.settles) {
            settles_[static_cast<std::size_t>(s.what)] += 1;
            if (s.what == said::stored) {
                stored += 1;
                expect(row.has_succeeded && row.result == s.result && row.epoch == s.epoch,
                       "a settle that was said to be stored is there, and no claim came after it");
            }
            expect(s.what != said::absent || row.result != s.result,
                   "a settle that was said to be absent is not there");
        }
        expect(stored <= 1, "an entry is settled once");
    }

    void compare_purged(direct& on, const std::string& prefix) const {
        const auto there = on.number("SELECT count(*) FROM " + prefix + "entries WHERE queue = 'ended'");
        const auto of = [](const auto& counts, said what) { return counts[static_cast<std::size_t>(what)]; };
        const auto least = of(kept_, said::stored) + of(purged_, said::stored) + of(purged_, said::in_doubt);
        const auto most = of(kept_, said::stored) + of(kept_, said::in_doubt) + of(purged_, said::stored);
        expect(there >= least, "purges remove what they say, and enqueues of ended entries are stored");
        expect(there <= most, "purges that were said to be stored have happened");
    }

    /// What one transaction writes in several rows is there as a whole.
    static void compare_sums(direct& on, const std::string& prefix) {
        expect(on.number("SELECT count(*) FROM (SELECT \"group\" AS name, count(*) AS members, "
                         "count(*) FILTER (WHERE state < 3) AS live FROM " +
                         prefix + "entries WHERE \"group\" IS NOT NULL GROUP BY 1) e FULL JOIN " + prefix +
                         "groups g USING (name) WHERE (e.members, e.live) IS DISTINCT FROM (g.members, g.live)") == 0,
               "the counts of every group are those of its members");
        expect(on.number("SELECT count(*) FROM (SELECT gate, row_number() OVER (PARTITION BY lane ORDER BY sequence) "
                         "AS place FROM " +
                         prefix +
                         "entries WHERE lane IS NOT NULL AND state < 3) e WHERE (place = 1) <> "
                         "(gate IS NOT NULL)") == 0,
               "of every lane the first live entry is open, and no other");
        expect(on.number("SELECT count(*) FROM (SELECT DISTINCT queue, lane FROM " + prefix +
                         "entries WHERE lane IS NOT NULL AND state < 3) e FULL JOIN " + prefix +
                         "lanes l USING (queue, lane) WHERE e IS NULL OR l IS NULL") == 0,
               "a lane has a row if it has a live entry");
    }

    void print() const {
        const auto line = [](const char* what, const std::array<std::size_t, 3>& counts) {
            std::printf("  %-9s said stored %6zu, absent %6zu, in doubt %5zu\n", what, counts[0], counts[1], counts[2]);
        };
        line("enqueues", enqueues_);
        line("claims", claims_);
        line("settles", settles_);
        std::printf("  of the enqueues in doubt %zu were stored; %zu claims took an entry again after its lease\n",
                    landed_, again_);
        std::printf("  claims in doubt without an answer have taken %zu entries, of at most %zu\n", unheard_,
                    unheard_max_);
        std::printf("  purged: said stored %ld, in doubt %ld\n", -purged_[0], -purged_[2]);
    }

    std::mutex mutex_{};
    std::map<vouch::id, history> entries_{};
    std::array<long, 3> kept_{};
    std::array<long, 3> purged_{};
    std::array<std::size_t, 3> enqueues_{};
    std::array<std::size_t, 3> claims_{};
    std::array<std::size_t, 3> settles_{};
    std::size_t landed_ = 0;
    std::size_t again_ = 0;
    std::size_t unheard_ = 0;
    std::size_t unheard_max_ = 0;
};

} // namespace fault_program
