// SPDX-License-Identifier: MIT
// The steps that the fault tests run, what the memory store shows after the same steps, and the rules of the tables.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/failing_memory.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_faults_test {

// The work. All that it is given is made beforehand, so that every allocation that fails is the store's.

/// Long enough for every copy to allocate.
inline const std::string text(60, 'x');

inline vouch::draft draft_with(std::uint64_t n, std::string lane, std::string group) {
    auto d = draft_of(n);
    d.payload = d.progress = text;
    d.key = text + std::to_string(n);
    d.lane = std::move(lane);
    d.group = std::move(group);
    d.parent = n > 1 ? id_of(1) : vouch::id{};
    d.trail = {id_of(1), id_of(2)};
    d.headers = {{text, text}};
    return d;
}

inline vouch::draft successor_of(std::uint64_t dead, std::uint64_t n) {
    auto d = draft_of(n);
    d.predecessor = id_of(dead);
    return d;
}

/// Entries 1 to 12: 1 to 6 claimed, 11 dead, 12 succeeded, 5 to 7 in one lane, most of them in groups.
template <class Store>
void furnish(Store& store) {
    vouch::transact(store, [](auto& tx) {
        for (std::uint64_t n = 1; n <= 12; ++n) {
            auto d = draft_with(n, n >= 5 && n <= 7 ? "lane" : "", n % 2 == 0 ? "g" : "");
            tx.enqueue(std::array{d}, t0);
        }
        for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U, 12U}) {
            std::ignore = tx.claim(request(t0, {.only = id_of(n)}));
        }
        std::ignore = tx.cancel(id_of(11), "e", t0);
        settle_in(tx, {id_of(12), 1}, vouch::succeed{text}, t0);
    });
}

/// Drafts without relations; one with a payload that lies apart.
inline std::vector<vouch::draft> plain_drafts() {
    std::vector<vouch::draft> out;
    for (std::uint64_t n = 40; n < 50; ++n) {
        out.push_back(draft_of(n));
        out.back().queue = "plain";
    }
    out.back().payload.assign(3'000, 'x');
    return out;
}

struct inputs {
    std::vector<vouch::draft> fresh{draft_with(20, "lane", "g"), draft_with(21, "", "h"), draft_with(20, "", ""),
                                    draft_with(22, "other", "h")};
    std::vector<vouch::settle> settles{{{id_of(2), 1}, vouch::succeed{text}},
                                       {{id_of(3), 1}, vouch::retry{text, t0 + 1h}},
                                       {{id_of(4), 1}, vouch::bury{text, text}},
                                       {{id_of(5), 1}, vouch::bury{text}},
                                       {{id_of(1), 1}, vouch::advance{text, t0}}};
    std::vector<vouch::ticket> tickets{{id_of(1), 1}, {id_of(2), 1}};
    vouch::claim_request any = request(t0 + 1s, {.limit = 2});
    vouch::claim_request just_one = request(t0 + 1s, {.only = id_of(10)});
    std::vector<vouch::settle> handing_back{{{id_of(10), 1}, vouch::release{t0 + 1h}}};
    std::vector<vouch::draft> successors{successor_of(11, 23), successor_of(4, 24)};
    std::vector<vouch::draft> plain = plain_drafts();
    vouch::claim_request neighbours = request(t0, {.queue = "plain"});
    std::vector<vouch::settle> successes{
        {{id_of(40), 1}, vouch::succeed{}}, {{id_of(41), 1}, vouch::succeed{}}, {{id_of(42), 1}, vouch::succeed{}}};
    std::vector<vouch::draft> joining{draft_with(30, "lane", "h"), draft_with(31, "", "h")};
    vouch::purge_request ended{.queue = "q", .before = t0 + 1h};
    query everything{.by = query::path::all, .queue = "q", .limit = 1000, .payloads = true};
    query everything_plain{.by = query::path::all, .queue = "plain", .limit = 1000, .payloads = true};
    query members{.by = query::path::group, .group = "g"};
    std::string queue = "q";
};

enum class step : std::uint8_t { produce, hold, work, bulk, clean, join };
inline constexpr std::array steps{step::produce, step::hold, step::work, step::bulk, step::clean, step::join};

template <class Writer>
void act(step what, Writer& tx, const inputs& in) {
    switch (what) {
    case step::produce: tx.enqueue(in.fresh, t0); break;
    case step::hold:
        std::ignore = tx.extend(in.tickets, t0 + 1s, 1h);
        std::ignore = tx.nudge(id_of(1), t0 + 1s);
        std::ignore = tx.nudge(id_of(8), t0 - 1s);
        break;
    case step::work:
        std::ignore = tx.settle(in.settles, t0 + 1s);
        std::ignore = tx.claim(in.just_one);
        std::ignore = tx.settle(in.handing_back, t0 + 1s);
        std::ignore = tx.claim(in.any);
        break;
    case step::bulk: // neighbours, several in one statement
        tx.enqueue(in.plain, t0);
        std::ignore = tx.claim(in.neighbours);
        std::ignore = tx.settle(in.successes, t0 + 1s);
        break;
    case step::clean:
        std::ignore = tx.cancel(id_of(9), in.queue, t0 + 2s);
        tx.enqueue(in.successors, t0 + 2s);
        std::ignore = tx.cancel(id_of(23), in.queue, t0 + 2s);
        std::ignore = tx.purge(in.ended);
        std::ignore = tx.list(in.members);
        break;
    case step::join: tx.enqueue(in.joining, t0); break;
    }
}

// What is seen.

struct sight {
    std::vector<vouch::entry> entries{};
    std::vector<vouch::entry> plain{};
    vouch::state_counts counts{};
    std::optional<vouch::time_point> due{};

    [[nodiscard]] friend bool operator==(const sight&, const sight&) = default;
};

template <class Reader>
sight look_at(const Reader& reader, const inputs& in) {
    return {reader.list(in.everything), reader.list(in.everything_plain), reader.counts(in.queue),
            reader.next_due(in.queue)};
}

/// What the memory store shows after the same steps.
inline const sight& expected(const std::vector<step>& taken, const inputs& in) {
    static std::map<std::vector<step>, sight> known;
    auto& answer = known[taken];
    if (answer.entries.empty()) {
        vouch::memory::store store;
        furnish(store);
        for (const auto one : taken) {
            vouch::transact(store, [&](auto& tx) { act(one, tx, in); });
        }
        answer = look_at(store, in);
    }
    return answer;
}

/// Rows that break a rule of the tables: SQLite's own, where an entry stands, what a gate is, what lies apart, and what
/// a group counts.
inline std::string broken_rules(const application& app) {
    const std::string ahead = R"(EXISTS (SELECT 1 FROM vouch_relations me CROSS JOIN vouch_relations h
 WHERE me.sequence = e.sequence AND h.queue = me.queue AND h.lane = me.lane AND h.is_live AND h.sequence < e.sequence))";
    const std::string gate = "CASE WHEN state >= 3 THEN updated_at WHEN state = 2 THEN ifnull(gate, 'none') WHEN " +
                             ahead + " THEN NULL ELSE due_at END"; // claimed: the lease's end, whatever it is
    const std::string none_after = "NOT EXISTS (SELECT 1 FROM vouch_relations s WHERE s.replaces = e.sequence)";
    auto integrity = app.text("PRAGMA integrity_check");
    return (integrity == "ok" ? "" : integrity) +
           app.text("SELECT 'gate of ' || sequence FROM vouch_entries e WHERE gate IS NOT " + gate) +
           app.text("SELECT 'partition of ' || sequence FROM vouch_entries WHERE partition & 3 <> max(state - 2, 0)") +
           app.text("SELECT 'queue of ' || sequence FROM vouch_entries WHERE partition >> 2 NOT IN"
                    " (SELECT number FROM vouch_queues)") +
           app.text("SELECT 'death of ' || sequence FROM vouch_entries e WHERE (state = 4) <> EXISTS"
                    " (SELECT 1 FROM vouch_dead d WHERE d.queue = e.partition >> 2 AND d.sequence = e.sequence)") +
           app.text("SELECT 'payload of ' || sequence FROM vouch_entries e WHERE (payload IS NULL) <> EXISTS"
                    " (SELECT 1 FROM vouch_payloads p WHERE p.sequence = e.sequence)") +
           app.text("SELECT 'relations of ' || r.sequence FROM vouch_relations r LEFT JOIN vouch_entries e"
                    " USING (sequence) WHERE e.sequence IS NULL OR r.queue <> e.partition >> 2"
                    " OR e.tied <> (r.\"group\" IS NOT NULL OR r.lane IS NOT NULL OR r.parent IS NOT NULL)"
                    " OR (r.lane IS NOT NULL OR r.parent IS NOT NULL) AND r.is_live <> (e.state < 3)") +
           app.text(
               "SELECT 'rest of ' || sequence FROM (SELECT sequence FROM vouch_dead UNION ALL"
               " SELECT sequence FROM vouch_payloads) WHERE sequence NOT IN (SELECT sequence FROM vouch_entries)") +
           app.text(R"(SELECT 'group ' || name FROM (SELECT r."group" AS name, count(*) AS members,
 sum(state < 3) AS live, sum(state <> 3 AND )" +
                    none_after + R"() AS unfinished FROM vouch_entries e JOIN vouch_relations r USING (sequence)
 WHERE r."group" IS NOT NULL GROUP BY r."group")
 counted WHERE NOT EXISTS (SELECT 1 FROM vouch_groups g WHERE g.name = counted.name
 AND g.members = counted.members AND g.live = counted.live AND g.unfinished = counted.unfinished))") +
           app.text(R"(SELECT 'no member of ' || name FROM vouch_groups g
 WHERE NOT EXISTS (SELECT 1 FROM vouch_relations r WHERE r."group" = g.name))");
}

// One run.

/// A file of the state all runs begin with; orders are the application's.
struct workshop {
    folder files{};
    std::string model = files.file("model.db");
    inputs in{};

    workshop() {
        sqlite::store store(model);
        furnish(store);
        application app(model);
        app.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY)");
    }

    [[nodiscard]] std::string copy() const {
        auto path = files.fresh_path();
        std::filesystem::copy_file(model, path);
        return path;
    }
};

} // namespace sqlite_faults_test
