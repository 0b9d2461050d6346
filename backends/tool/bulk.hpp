// SPDX-License-Identifier: MIT
// Does the same to every entry that the filters select: counts first, asks, then acts in small commits, so that workers
// can write in between. It may be interrupted and repeated: every act is a verb of the contract, which changes nothing the
// second time. Entries that are stored after the count are left alone, so it ends although successors fail beside it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

#include "any_store.hpp"
#include "arguments.hpp"
#include "confirm.hpp"
#include "database.hpp"
#include "interrupt.hpp"
#include "json.hpp"
#include "output.hpp"
#include "search.hpp"

namespace tool {

/// What a store said to one entry.
enum class answer : std::uint8_t { applied, repeated, refused };

[[nodiscard]] constexpr answer answer_of(vouch::verdict v) {
    return v == vouch::verdict::applied    ? answer::applied
           : v == vouch::verdict::repeated ? answer::repeated
                                           : answer::refused;
}

[[nodiscard]] constexpr answer answer_of(const vouch::receipt& r) {
    return r.what == vouch::receipt::kind::inserted    ? answer::applied
           : r.what == vouch::receipt::kind::duplicate ? answer::repeated
                                                       : answer::refused;
}

/// A verb for many entries.
struct bulk_act {
    std::string_view verb;                       ///< "requeue"
    std::string_view applied, repeated, refused; ///< words for the answers: "requeued", "already had a successor"
    bool (*may_apply)(const vouch::entry&, const arguments&, vouch::time_point now);
    answer (*apply)(any_transaction&, const vouch::entry&, const arguments&, vouch::time_point now);
};

struct bulk_count {
    std::size_t entries = 0;
    std::size_t sagas = 0;
    std::uint64_t last = 0;
    bool is_cut = false;
};

[[nodiscard]] inline bulk_count count_of(const stored_entries& in, const filter& by, const bulk_act& act) {
    bulk_count out;
    search all(in, by);
    for (auto e = all.next(); e; e = all.next()) {
        if (act.may_apply(*e, by.with, by.now)) {
            out.entries += 1;
            out.sagas += vouch::is_saga(*e) ? 1U : 0U;
            out.last = e->sequence;
        }
    }
    out.is_cut = all.is_cut();
    all.remark();
    return out;
}

class bulk_run {
  public:
    bulk_run(any_store& store, const filter& by, const bulk_act& act) : store_(store), by_(by), act_(act) {}

    void up_to(std::uint64_t last) {
        constexpr std::size_t at_once = 100;
        search all(store_, by_, {.up_to = last});
        std::vector<vouch::entry> batch;
        for (auto e = all.next(); e && was_interrupted == 0; e = all.next()) {
            if (act_.may_apply(*e, by_.with, by_.now)) {
                batch.push_back(std::move(*e));
            }
            if (batch.size() == at_once) {
                commit(batch);
            }
        }
        if (was_interrupted == 0) {
            commit(batch);
        }
    }

    [[nodiscard]] std::size_t count(answer a) const { return answers_[static_cast<std::size_t>(a)]; }
    [[nodiscard]] std::uint64_t last_sequence() const noexcept { return last_; }

  private:
    void commit(std::vector<vouch::entry>& batch) {
        const auto answers = vouch::transact(store_, [&](auto& tx) {
            std::vector<answer> out;
            for (const auto& e : batch) {
                out.push_back(act_.apply(tx, e, by_.with, vouch::system_now()));
            }
            return out;
        });
        for (const auto a : answers) {
            answers_[static_cast<std::size_t>(a)] += 1;
        }
        last_ = batch.empty() ? last_ : batch.back().sequence;
        batch.clear();
    }

    any_store& store_;
    const filter& by_;
    const bulk_act& act_;
    std::array<std::size_t, 3> answers_{};
    std::uint64_t last_ = 0;
};

[[nodiscard]] inline int report(const arguments& with, const bulk_act& act, const bulk_count& counted,
                                const bulk_run& ran) {
    if (is_json(with)) {
        print(text_of(json{{"matched", counted.entries},
                           {"applied", ran.count(answer::applied)},
                           {"repeated", ran.count(answer::repeated)},
                           {"refused", ran.count(answer::refused)},
                           {"interrupted", was_interrupted != 0},
                           {"complete", was_interrupted == 0 && !counted.is_cut}}) +
              "\n");
    } else {
        const auto part = [&](answer a, std::string_view words) {
            return std::to_string(ran.count(a)) + ' ' + std::string(words);
        };
        print(part(answer::applied, act.applied) + ", " + part(answer::repeated, act.repeated) + ", " +
              part(answer::refused, act.refused) + "\n");
    }
    if (was_interrupted != 0) {
        say("interrupted; the same command does the rest, and --after " + std::to_string(ran.last_sequence()) +
            " passes over what is done");
        return refused;
    }
    return done;
}

inline int act_on_all(database& in, const arguments& with, const bulk_act& act) {
    if (!with.has_filter()) {
        throw bad_usage(std::string(act.verb) + " needs an entry's id, or a filter such as --queue or --error");
    }
    auto wide = with;
    wide.scan = with.has_scan ? with.scan : UINT64_MAX; // pages keep it bounded in memory; it may take minutes
    const filter by(in, wide);
    const auto counted = count_of(in.stored(), by, act);
    const auto what = std::string(act.verb) + ' ' + std::to_string(counted.entries) +
                      (counted.entries == 1 ? " entry" : " entries") +
                      (counted.sagas == 0 ? "" : ", " + std::to_string(counted.sagas) + " of them sagas");
    if (with.dry_run) {
        print(is_json(with) ? text_of(json{{"matched", counted.entries},
                                           {"sagas", counted.sagas},
                                           {"complete", !counted.is_cut},
                                           {"dry_run", true}}) +
                                  "\n"
                            : "would " + what + "\n");
        return done;
    }
    if (!is_confirmed(with, what)) {
        return refused;
    }
    catch_interrupts();
    bulk_run run(in.store(), by, act);
    run.up_to(counted.last);
    return report(with, act, counted, run);
}

} // namespace tool
