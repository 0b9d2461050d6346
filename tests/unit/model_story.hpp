// SPDX-License-Identifier: MIT
// A store against the naive model: long random stories over few names and nearly equal times, and after every command
// the whole of what can be seen is compared, from inside the transaction and from outside.
//
// One seed is one story. A failure prints the seed and the story up to there. VOUCH_MODEL_STORIES in the environment
// changes how many there are, VOUCH_MODEL_SEED where they begin.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "model.hpp"
#include "model_sight.hpp"
#include "support.hpp"

namespace model {

using support::draft_of;
using support::t0;

inline constexpr int commands = 120;

/// How often each command met each answer.
using coverage = std::map<std::string, std::size_t>;

template <class Store>
class story {
    dice dice_;
    coverage& seen_;
    std::ostringstream* told_; // null: nobody listens, and nothing is written

    Store store_;
    std::optional<typename Store::transaction> tx_{};
    model::store committed_{};
    model::store own_{};
    std::uint64_t last_sequence_ = 0; // of all that were ever committed, or belong to the open transaction
    std::uint64_t last_committed_sequence_ = 0;
    vouch::time_point now_ = t0;
    std::vector<vouch::ticket> tickets_{};

  public:
    story(Store fresh, std::uint64_t seed, coverage& seen, std::ostringstream* told)
        : dice_(seed), seen_(seen), told_(told), store_(std::move(fresh)) {}

    void run() {
        for (int n = 0; n < commands; ++n) {
            if (!tx_) {
                tell("begin");
                tx_.emplace(store_.begin());
            }
            command();
            compare_some(*tx_, own_, dice_);
            compare_some(store_, committed_, dice_);
            if (dice_.chance(3)) {
                compare_all(*tx_, own_, dice_);
                compare_all(store_, committed_, dice_);
            }
            if (dice_.chance(25)) {
                end();
            }
        }
        end();
    }

  private:
    template <class... Parts>
    void tell(const Parts&... parts) {
        if (told_ != nullptr) {
            *told_ << "  ";
            ((*told_ << parts), ...);
            *told_ << '\n';
        }
    }
    static std::string at(vouch::time_point t) { return "t0+" + std::to_string((t - t0).count()); }

    void saw(std::string_view command, std::string_view answer) {
        seen_[std::string(command) + ' ' + std::string(answer)] += 1;
    }

    // What to do it with: few names, and times within a few ticks of each other.

    vouch::id some_id() {
        if (!own_.records.empty() && dice_.chance(60)) {
            return own_.records[dice_.below(own_.records.size())].entry.id;
        }
        return id_of(1 + dice_.below(ids));
    }
    vouch::time_point some_time() { return now_ + vouch::duration{dice_.one_of({-2, -1, 0, 0, 1, 1, 2, 5, 9})}; }
    vouch::duration some_lease() { return vouch::duration{dice_.one_of({1, 2, 5, 9, 30})}; }
    std::string some_queue() { return dice_.chance(85) ? "q" : "r"; }
    std::optional<vouch::time_point> maybe_time(std::size_t percent) {
        return dice_.chance(percent) ? std::optional{some_time()} : std::nullopt;
    }

    vouch::ticket some_ticket() {
        if (dice_.chance(75)) {
            std::vector<vouch::ticket> present;
            for (const auto& r : own_.records) {
                if (r.entry.state == state::claimed) {
                    present.push_back({r.entry.id, r.entry.epoch});
                }
            }
            if (!present.empty()) {
                return present[dice_.below(present.size())];
            }
        }
        if (!tickets_.empty() && dice_.chance(60)) {
            return tickets_[dice_.below(tickets_.size())];
        }
        return {some_id(), dice_.below(4)};
    }

    vouch::outcome some_outcome() {
        switch (dice_.below(5)) {
        case 0: return vouch::succeed{dice_.one_of<std::string>({"", "result"})};
        case 1: return vouch::retry{dice_.one_of<std::string>({"e1", "e2"}), some_time()};
        case 2: return vouch::bury{"e3", dice_.chance(50) ? std::optional<std::string>("reply") : std::nullopt};
        case 3: return vouch::release{maybe_time(50)};
        default: return vouch::advance{dice_.one_of<std::string>({"p1", "p2"}), maybe_time(50)};
        }
    }

    /// A dead one, if there is any.
    vouch::id some_dead_id() {
        std::vector<vouch::id> dead;
        for (const auto& r : own_.records) {
            if (r.entry.state == state::dead) {
                dead.push_back(r.entry.id);
            }
        }
        return dead.empty() ? some_id() : dead[dice_.below(dead.size())];
    }

    vouch::draft some_draft() {
        auto d = draft_of(1 + dice_.below(ids), some_queue());
        if (own_.find(d.id) != nullptr && dice_.chance(70)) {
            d.id = id_of(1 + dice_.below(ids));
        }
        d.topic = dice_.one_of<std::string>({"a", "b"});
        d.payload = dice_.one_of<std::string>({"", "p", "payload"});
        d.due_at = maybe_time(60);
        d.expires_at = maybe_time(10);
        d.attempts_max = static_cast<std::uint32_t>(dice_.below(3));
        d.progress = dice_.one_of<std::string>({"", "p0"});
        if (dice_.chance(10)) {
            d.headers = {{"name", "value"}};
            d.trail = {some_id()};
        }
        if (dice_.chance(30)) {
            d.predecessor = dice_.chance(80) ? some_dead_id() : some_id();
            const auto* const old = own_.find(d.predecessor);
            d.queue = old != nullptr && dice_.chance(90) ? old->queue : d.queue;
            d.parent = dice_.chance(10) ? some_id() : vouch::id{};
            return d;
        }
        d.key = dice_.one_of<std::string>({"", "", "k", "l"});
        if (dice_.chance(8)) {
            d.result = "born";
            return d;
        }
        d.group = dice_.one_of<std::string>({"", "", "g", "h"});
        d.lane = dice_.one_of<std::string>({"", "", "x", "y"});
        d.parent = dice_.chance(25) ? some_id() : vouch::id{};
        return d;
    }

    // The commands.

    void command() {
        const auto roll = dice_.below(100);
        if (roll < 20) {
            enqueue();
        } else if (roll < 42) {
            claim();
        } else if (roll < 62) {
            settle();
        } else if (roll < 67) {
            extend();
        } else if (roll < 72) {
            nudge();
        } else if (roll < 80) {
            cancel();
        } else if (roll < 88) {
            purge();
        } else {
            pass_time();
        }
    }

    void enqueue() {
        std::vector<vouch::draft> drafts(1 + dice_.below(3));
        std::vector<vouch::receipt> expected;
        for (auto& d : drafts) {
            d = some_draft();
            const bool has_id = own_.find(d.id) != nullptr;
            expected.push_back(own_.enqueue(d, now_));
            const auto why = has_id ? " by id" : !d.predecessor.is_nil() ? " by predecessor" : " by key";
            const auto what = expected.back().what;
            saw("enqueue", std::string(name_of(what)) + (what == vouch::receipt::kind::duplicate ? why : ""));
            tell("enqueue ", d.id.low, " queue ", d.queue, " key ", d.key, " group ", d.group, " lane ", d.lane,
                 " parent ", d.parent.low, " predecessor ", d.predecessor.low, " due ", at(d.due_at.value_or(now_)),
                 " now ", at(now_), d.result ? " born succeeded" : "", " -> ", name_of(what), ' ',
                 expected.back().id.low);
        }
        require_same(tx_->enqueue(drafts, now_), expected, "receipts");
        adopt_sequences(expected);
    }

    /// Which sequence is the store's business, as long as they only grow.
    void adopt_sequences(const std::vector<vouch::receipt>& receipts) {
        auto r = own_.records.end() -
                 static_cast<std::ptrdiff_t>(std::count_if(receipts.begin(), receipts.end(), [](const auto& one) {
                     return one.what == vouch::receipt::kind::inserted;
                 }));
        for (; r != own_.records.end(); ++r) {
            const auto stored = tx_->find(r->entry.id);
            if (!stored || stored->sequence <= last_sequence_) {
                throw mismatch{"sequence"};
            }
            r->entry.sequence = last_sequence_ = stored->sequence;
        }
    }

    void claim() {
        const vouch::claim_request r{.queue = some_queue(),
                                     .limit = dice_.one_of<std::size_t>({0, 1, 1, 2, 3, 100}),
                                     .now = now_,
                                     .lease = some_lease(),
                                     .worker = dice_.one_of<std::string>({"", "w1", "w2"}),
                                     .only = dice_.chance(25) ? some_id() : vouch::id{}};
        const auto held = [&] {
            return std::count_if(own_.records.begin(), own_.records.end(),
                                 [](const auto& one) { return one.entry.state == state::claimed; });
        };
        const auto held_before = held();
        const auto expected = own_.claim(r);
        for (const auto& e : expected) {
            tickets_.push_back(ticket_of(e));
            saw("claim", e.epoch == 1 ? "of a fresh one" : "again");
        }
        if (held() - held_before != std::ssize(expected)) {
            saw("claim", "over a lapsed one");
        }
        saw(r.only.is_nil() ? "claim any" : "claim one", expected.empty() ? "nothing" : "something");
        tell("claim queue ", r.queue, " limit ", r.limit, " only ", r.only.low, " now ", at(now_), " lease ",
             r.lease.count(), " -> ", expected.size());
        require_same(tx_->claim(r), expected, "claimed");
    }

    void settle() {
        static constexpr std::array names{"succeed", "retry", "bury", "release", "advance"};
        std::vector<vouch::settle> settles(dice_.one_of<std::size_t>({1, 1, 2, 3}));
        std::vector<vouch::settlement> expected;
        for (auto& s : settles) {
            s = {some_ticket(), some_outcome()};
            const auto* const before = own_.find(s.ticket.id);
            const bool woken = before != nullptr && before->woken;
            expected.push_back(own_.settle(s, now_));
            saw(names[s.outcome.index()], name_of(expected.back().verdict));
            if (expected.back().group_completed) {
                saw("group", "completed");
            }
            if (woken && expected.back().verdict == vouch::verdict::applied) {
                saw("settle", "after a nudge");
            }
            tell(names[s.outcome.index()], ' ', s.ticket.id.low, " epoch ", s.ticket.epoch, " now ", at(now_), " -> ",
                 name_of(expected.back().verdict), expected.back().group_completed ? ", group completed" : "");
        }
        require_same(tx_->settle(settles, now_), expected, "settlements");
    }

    void extend() {
        std::vector<vouch::ticket> tickets(1 + dice_.below(2));
        const auto lease = some_lease();
        std::vector<vouch::verdict> expected;
        for (auto& t : tickets) {
            t = some_ticket();
            expected.push_back(own_.extend(t, now_, lease));
            saw("extend", name_of(expected.back()));
            tell("extend ", t.id.low, " epoch ", t.epoch, " now ", at(now_), " lease ", lease.count(), " -> ",
                 name_of(expected.back()));
        }
        require_same(tx_->extend(tickets, now_, lease), expected, "extensions");
    }

    void nudge() {
        const auto id = some_id();
        const auto expected = own_.nudge(id, now_);
        saw("nudge", name_of(expected));
        tell("nudge ", id.low, " now ", at(now_), " -> ", name_of(expected));
        require_same(tx_->nudge(id, now_), expected, "nudge");
    }

    void cancel() {
        const auto id = some_id();
        const auto expected = own_.cancel(id, "c", now_);
        saw("cancel", name_of(expected));
        tell("cancel ", id.low, " now ", at(now_), " -> ", name_of(expected));
        require_same(tx_->cancel(id, "c", now_), expected, "cancel");
    }

    void purge() {
        vouch::purge_request r{
            .queue = some_queue(), .before = some_time(), .limit = dice_.one_of<std::size_t>({0, 1, 2, 3, 100})};
        if (dice_.chance(40)) {
            r.state = dice_.one_of({state::succeeded, state::dead});
        }
        const auto generations = [&] {
            return std::count_if(own_.records.begin(), own_.records.end(),
                                 [](const auto& one) { return one.replaces != 0; });
        };
        const auto had = generations();
        const auto expected = own_.purge(r);
        if (generations() != had) {
            saw("purge", "a successor");
        }
        saw("purge", expected == 0 ? "nothing" : expected == r.limit ? "up to its limit" : "all there was");
        tell("purge queue ", r.queue, " before ", at(r.before), " limit ", r.limit, r.state ? " state " : "",
             r.state ? name_of(*r.state) : "", " -> ", expected);
        require_same(tx_->purge(r), expected, "purge");
    }

    /// A step, or to exactly the next gate, or to a tick before or after it.
    void pass_time() {
        const auto due = own_.next_due(some_queue());
        if (due && dice_.chance(60)) {
            now_ = *due + vouch::duration{dice_.one_of({-1, 0, 1})};
        } else {
            now_ += vouch::duration{dice_.one_of({-3, 1, 1, 2, 10})};
        }
        tell("now ", at(now_));
    }

    void end() {
        if (!tx_) {
            return;
        }
        const bool commit = dice_.chance(70);
        tell(commit ? "commit" : "rollback");
        if (commit) {
            tx_->commit();
            committed_ = own_;
            last_committed_sequence_ = last_sequence_;
        } else {
            own_ = committed_;
            last_sequence_ = last_committed_sequence_;
        }
        tx_.reset();
        compare_some(store_, committed_, dice_);
        if (dice_.chance(20)) {
            compare_all(store_, committed_, dice_);
        }
    }
};

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Tells `usual` stories, each on a store fresh from `make()`, and requires that every answer was met often enough.
template <class Make>
void compare_with_model(std::uint64_t usual, Make&& make) {
    const auto first = from_environment("VOUCH_MODEL_SEED", 1);
    const auto stories = from_environment("VOUCH_MODEL_STORIES", usual);
    coverage seen;
    for (auto seed = first; seed < first + stories; ++seed) {
        try {
            story(make(), seed, seen, nullptr).run();
        } catch (const mismatch&) {
            std::ostringstream told;
            coverage again;
            try {
                story(make(), seed, again, &told).run();
            } catch (const mismatch& m) {
                FAIL("VOUCH_MODEL_SEED=" << seed << "\n" << told.str() << "differs: " << m.what);
            }
            FAIL("VOUCH_MODEL_SEED=" << seed << " differed once and not again");
        }
    }

    if (stories >= usual) {
        for (const std::string verb : {"succeed", "retry", "bury", "release", "advance", "extend", "nudge", "cancel"}) {
            for (const auto verdict : vouch::all_verdicts) {
                const auto pair = verb + ' ' + std::string(name_of(verdict));
                CAPTURE(pair);
                CHECK(seen[pair] > usual / 60);
            }
        }
        for (const auto* const pair :
             {"enqueue inserted", "enqueue refused", "enqueue duplicate by id", "enqueue duplicate by key",
              "enqueue duplicate by predecessor", "claim any nothing", "claim any something", "claim one nothing",
              "claim one something", "claim of a fresh one", "claim again", "claim over a lapsed one",
              "settle after a nudge", "purge a successor", "group completed", "purge nothing", "purge up to its limit",
              "purge all there was"}) {
            CAPTURE(pair);
            CHECK(seen[pair] > usual / 60);
        }
    }
}

} // namespace model
