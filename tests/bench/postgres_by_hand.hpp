// SPDX-License-Identifier: MIT
// A fast hand-written job queue to compare the PostgreSQL store with: statements prepared once, values in binary, and a
// settle together with the next claim in one round trip and one commit. Rows are kept. It runs on two tables:
//  - bare: nine columns, and indexes on the primary key, the id and the gate only;
//  - the store's own table, whose columns it writes as the store does; it shows what the schema alone costs. It supports
//    only entries without key, group, lane and parent.
// For one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "postgres_wire.hpp"

namespace by_hand {

/// The statements on one table.
struct dialect {
    std::string create{};
    std::string table{};
    std::string insert{};  ///< $1 id, $2 now, $3 payload
    std::string inserts{}; ///< $1 ids, $2 now, $3 payloads
    std::string
        claim{}; ///< $1 now, $2 limit, $3 the end of the lease; returns id, epoch, sequence, payload, due_at, topic
    std::string settle{}; ///< $1 ids, $2 epochs, $3 now
};

[[nodiscard]] inline dialect bare_table() {
    return {.create = R"(CREATE TABLE IF NOT EXISTS jobs (sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
 id uuid NOT NULL UNIQUE, gate bigint, due_at bigint NOT NULL, attempts bigint NOT NULL, epoch bigint NOT NULL,
 state smallint NOT NULL, topic text COLLATE "C" NOT NULL, payload bytea NOT NULL);
 CREATE INDEX IF NOT EXISTS jobs_gate ON jobs (gate, sequence) WHERE gate IS NOT NULL)",
            .table = "jobs",
            .insert = R"(INSERT INTO jobs (id, gate, due_at, attempts, epoch, state, topic, payload)
 VALUES ($1::uuid, $2::bigint, $2::bigint, 0, 0, 0, 'user.registered', $3::bytea) ON CONFLICT DO NOTHING)",
            .inserts = R"(INSERT INTO jobs (id, gate, due_at, attempts, epoch, state, topic, payload)
 SELECT d.id, $2::bigint, $2::bigint, 0, 0, 0, 'user.registered', d.payload
 FROM unnest($1::uuid[], $3::bytea[]) AS d (id, payload) ON CONFLICT DO NOTHING)",
            .claim = R"(UPDATE jobs SET state = 2, attempts = attempts + 1, epoch = epoch + 1, gate = $3::bigint
 WHERE sequence = ANY (ARRAY(SELECT sequence FROM jobs WHERE gate <= $1::bigint
 ORDER BY gate, sequence LIMIT $2::bigint FOR NO KEY UPDATE SKIP LOCKED))
 RETURNING id, epoch, sequence, payload, due_at, topic)",
            .settle = R"(UPDATE jobs j SET state = 3, gate = NULL FROM unnest($1::uuid[], $2::bigint[]) AS s (id, epoch)
 WHERE j.id = s.id AND j.epoch = s.epoch AND j.state = 2 AND $3::bigint > 0)"};
}

/// The store's table with the prefix `vouch_`, which exists.
[[nodiscard]] inline dialect same_schema() {
    constexpr std::string_view columns = R"((sequence, id, gate, due_at, attempts, lapses, failures, epoch, updated_at,
 created_at, attempts_max, generation, state, woken, newest, queue, topic, worker, last_error, payload))";
    return {.create = "SELECT 1",
            .table = "vouch_entries",
            .insert = "INSERT INTO vouch_entries " + std::string(columns) + R"(
 VALUES (nextval('vouch_sequence'), $1::uuid, $2::bigint, $2::bigint, 0, 0, 0, 0, $2::bigint, $2::bigint, 0, 1, 0, false,
 true, 'mail', 'user.registered', '', '', $3::bytea) ON CONFLICT DO NOTHING)",
            .inserts = "INSERT INTO vouch_entries " + std::string(columns) + R"(
 SELECT nextval('vouch_sequence'), d.id, $2::bigint, $2::bigint, 0, 0, 0, 0, $2::bigint, $2::bigint, 0, 1, 0, false, true,
 'mail', 'user.registered', '', '', d.payload FROM unnest($1::uuid[], $3::bytea[]) AS d (id, payload)
 ON CONFLICT DO NOTHING)",
            .claim =
                R"(UPDATE vouch_entries SET state = 2, attempts = attempts + 1, epoch = epoch + 1, gate = $3::bigint,
 woken = false, worker = 'worker-1', updated_at = $1::bigint, last_attempt_at = $1::bigint
 WHERE id = ANY (ARRAY(SELECT id FROM vouch_entries WHERE queue = 'mail' AND gate <= $1::bigint
 ORDER BY gate, sequence LIMIT $2::bigint FOR NO KEY UPDATE SKIP LOCKED))
 RETURNING id, epoch, sequence, payload, due_at, topic)",
            .settle =
                R"(UPDATE vouch_entries e SET state = 3, gate = NULL, result = '', updated_at = $3::bigint, lapses = 0,
 woken = false FROM unnest($1::uuid[], $2::bigint[]) AS s (id, epoch)
 WHERE e.id = s.id AND e.epoch = s.epoch AND e.state = 2)"};
}

struct job {
    std::string id{};
    std::string topic{};
    std::string payload{};
    std::int64_t due_at = 0; // in microseconds, like all times here
    std::int64_t sequence = 0;
    std::int64_t epoch = 0;
};

class queue {
  public:
    queue(const std::string& conninfo, const dialect& on) : db_(conninfo) {
        db_.execute(on.create);
        db_.execute("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; "
                    "SET enable_mergejoin = off; SET enable_bitmapscan = off; SET jit = off");
        db_.prepare("begin", "BEGIN");
        db_.prepare("commit", "COMMIT");
        db_.prepare("insert", on.insert);
        db_.prepare("inserts", on.inserts);
        db_.prepare("claim", on.claim);
        db_.prepare("settle", on.settle);
    }

    /// In one commit, without a transaction block.
    void enqueue(std::string_view id, std::int64_t now, std::string_view payload) {
        db_.run("insert", {id, wire::bytes_of(now), payload});
    }
    void enqueue(const std::vector<std::string>& ids, std::int64_t now, std::string_view payload) {
        wire::array all(wire::uuid);
        wire::array payloads(wire::bytea);
        for (const auto& id : ids) {
            all.add(id);
            payloads.add(payload);
        }
        db_.run("inserts", {all.bytes(), wire::bytes_of(now), payloads.bytes()});
    }

    /// Settles `jobs` and replaces them by the next claim, in one commit. Returns how many were settled.
    std::size_t settle_and_claim(std::vector<job>& jobs, std::size_t limit, std::int64_t now, std::int64_t lease) {
        db_.add("begin", {});
        if (!jobs.empty()) {
            wire::array ids(wire::uuid);
            wire::array epochs(wire::bigint);
            for (const auto& j : jobs) {
                ids.add(j.id);
                epochs.add(wire::bytes_of(j.epoch));
            }
            db_.add("settle", {ids.bytes(), epochs.bytes(), wire::bytes_of(now)});
        }
        db_.add("claim",
                {wire::bytes_of(now), wire::bytes_of(static_cast<std::int64_t>(limit)), wire::bytes_of(now + lease)});
        db_.add("commit", {});
        const auto answers = db_.exchange();
        const auto settled =
            jobs.empty() ? std::size_t{0} : static_cast<std::size_t>(std::stoul(PQcmdTuples(answers[1].get())));
        const auto& claimed = answers[jobs.empty() ? 1 : 2];
        jobs.clear();
        for (int i = 0; i < PQntuples(claimed.get()); ++i) {
            const auto at = [&](int column) { return wire::value(claimed, i, column); };
            jobs.push_back({.id = std::string(at(0)),
                            .topic = std::string(at(5)),
                            .payload = std::string(at(3)),
                            .due_at = wire::integer_of(at(4)),
                            .sequence = wire::integer_of(at(2)),
                            .epoch = wire::integer_of(at(1))});
        }
        return settled;
    }

  private:
    wire::connection db_;
};

} // namespace by_hand
