// SPDX-License-Identifier: MIT
// How clauses receive: a consumer and the messages of the clause that it has returned, in order. Messages of other runs
// and clauses are acknowledged and forgotten, so a clause needs no empty broker.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/broker/any_consumer.hpp>
#include <vouch/conformance/broker/detail/sending.hpp>
#include <vouch/conformance/broker/detail/trial.hpp>
#include <vouch/conformance/broker/detail/unmet.hpp>
#include <vouch/relay/consumer.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// Names in order, cut if they are many.
[[nodiscard]] inline std::string joined(const std::vector<std::string>& names) {
    constexpr std::size_t shown_max = 40;
    std::string out;
    for (std::size_t i = 0; i < std::min(names.size(), shown_max); ++i) {
        out += (i == 0 ? "" : " ") + names[i];
    }
    if (names.size() > shown_max) {
        out += " and " + std::to_string(names.size() - shown_max) + " more";
    }
    return out.empty() ? "none" : out;
}

/// When a mailbox acknowledges the messages of its clause.
enum class acknowledging {
    on_arrival, ///< so that any number can be received
    on_request, ///< fewer than the bound of rule 7, which is at least 16
};

class mailbox {
  public:
    mailbox(trial& t, any_consumer& from, acknowledging when = acknowledging::on_request) noexcept
        : trial_(t), from_(from), when_(when) {}

    /// One call of `receive`. Returns what it has added to `arrived`.
    std::span<const received> receive(std::size_t limit, duration at_most, const std::stop_token& stop = {}) {
        const auto before = arrived_.size();
        without_lasting_fault("receive", [&] {
            auto got = from_.receive(limit, at_most, stop);
            expect(got.size() <= limit, "receive was called with the limit " + std::to_string(limit),
                   "at most " + std::to_string(limit) + " messages", std::to_string(got.size()) + " messages");
            keep(std::move(got));
        });
        return std::span(arrived_).subspan(before);
    }

    /// Receives until `enough()` holds. Returns false if the patience ends before that.
    template <class Enough>
    [[nodiscard]] bool receive_until(Enough&& enough) {
        const time_limit limit(trial_.patience());
        while (!enough()) {
            if (limit.is_over()) {
                return false;
            }
            receive(100, std::min<duration>(limit.left(), std::chrono::milliseconds{500}));
        }
        return true;
    }

    /// Receives until each of these has arrived at least once since `forget`.
    void expect_all(std::span<const message> expected) {
        std::vector<std::string> missing;
        const bool is_complete = receive_until([&] {
            missing = missing_of(expected);
            return missing.empty();
        });
        expect(is_complete,
               std::to_string(expected.size()) + " messages must arrive within " + seconds_text(trial_.patience()),
               "all of them", std::to_string(missing.size()) + " are missing: " + joined(missing));
    }
    void expect_all(const std::vector<message>& expected) { expect_all(std::span(expected)); }
    void expect_one(const message& expected) { expect_all(std::span(&expected, 1)); }

    /// Everything of this clause that was returned, in order, with repetitions.
    [[nodiscard]] const std::vector<received>& arrived() const noexcept { return arrived_; }
    [[nodiscard]] const std::vector<received>& malformed() const noexcept { return malformed_; }

    /// The names of what has arrived, each once, in the order of the first arrivals.
    [[nodiscard]] std::vector<std::string> first_arrivals() const {
        std::set<std::string> seen;
        std::vector<std::string> out;
        for (const auto& r : arrived_) {
            if (seen.insert(r.message.id).second) {
                out.push_back(trial_.name_of(r.message));
            }
        }
        return out;
    }

    /// Acknowledges what has arrived, and forgets it.
    void acknowledge_all() {
        without_lasting_fault("acknowledge", [&] { from_.acknowledge(arrived_); });
        forget();
    }
    void forget() {
        arrived_.clear();
        malformed_.clear();
    }

  private:
    void keep(std::vector<received> got) {
        std::vector<received> done;
        for (auto& r : got) {
            const bool is_ours = trial_.is_ours(r.message);
            if (when_ == acknowledging::on_arrival || (!is_ours && r.malformed.empty())) {
                done.push_back({.source = r.source, .tag = r.tag});
            }
            if (is_ours || !r.malformed.empty()) {
                (r.malformed.empty() ? arrived_ : malformed_).push_back(std::move(r));
            }
        }
        if (!done.empty()) {
            from_.acknowledge(done);
        }
    }

    [[nodiscard]] std::vector<std::string> missing_of(std::span<const message> expected) const {
        std::set<std::string> seen;
        for (const auto& r : arrived_) {
            seen.insert(r.message.id);
        }
        std::vector<std::string> out;
        for (const auto& m : expected) {
            if (!seen.contains(m.id)) {
                out.push_back(trial_.name_of(m));
            }
        }
        return out;
    }

    trial& trial_;
    any_consumer& from_;
    acknowledging when_;
    std::vector<received> arrived_{};
    std::vector<received> malformed_{};
};

[[nodiscard]] inline std::vector<std::string> names_of(const trial& t, std::span<const message> messages) {
    std::vector<std::string> out;
    for (const auto& m : messages) {
        out.push_back(t.name_of(m));
    }
    return out;
}

/// The first arrivals of each lane are in the order of `published`.
inline void expect_lane_order(const trial& t, const mailbox& at, const std::vector<message>& published) {
    std::set<std::string> lanes;
    for (const auto& m : published) {
        lanes.insert(m.lane);
    }
    for (const auto& lane : lanes) {
        std::vector<std::string> expected;
        for (const auto& m : published) {
            if (m.lane == lane) {
                expected.push_back(t.name_of(m));
            }
        }
        std::set<std::string> repeated;
        std::vector<std::string> seen;
        for (const auto& r : at.arrived()) {
            if (r.message.lane == lane && repeated.insert(r.message.id).second) {
                seen.push_back(t.name_of(r.message));
            }
        }
        expect_equal("the first arrivals of the lane " + shown(lane), joined(expected), joined(seen));
    }
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
