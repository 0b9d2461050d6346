// SPDX-License-Identifier: MIT
// How clauses publish: as a relay does, which repeats what is unknown before it goes on.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance/broker/any_publisher.hpp>
#include <vouch/conformance/broker/detail/quoted.hpp>
#include <vouch/conformance/broker/detail/trial.hpp>
#include <vouch/conformance/broker/detail/unmet.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline constexpr std::chrono::milliseconds pause_after_fault{20};

/// Calls `f`. A fault that may be over the next time is an ordinary answer here; any other exception fails the clause.
/// Returns whether the call succeeded.
template <class F>
bool without_lasting_fault(std::string_view what, F&& f) {
    try {
        f();
        return true;
    } catch (const unmet&) {
        throw;
    } catch (const error& e) {
        expect(e.is_transient(), std::string(what) + " throws",
               "a vouch::error that is_transient, because the next call may succeed",
               "vouch::error of the kind " + std::string(vouch::name_of(e.kind())) + ": " + shown(e.what()));
        std::this_thread::sleep_for(pause_after_fault);
        return false;
    } catch (const std::exception& e) {
        throw unmet{std::string(what) + " throws", "a vouch::error", "another exception: " + shown(e.what())};
    }
}

/// One call of `publish`. A call that throws says `unknown` of every message.
[[nodiscard]] inline std::vector<confirmation> answers_to(any_publisher& to, std::span<const message> messages) {
    std::vector<confirmation> out(messages.size());
    without_lasting_fault("publish", [&] {
        out = to.publish(messages);
        expect_equal("publish was called with " + std::to_string(messages.size()) + " messages",
                     std::to_string(messages.size()) + " confirmations", std::to_string(out.size()) + " confirmations");
    });
    return out;
}

/// "confirmed", or "refused (unroutable)".
[[nodiscard]] inline std::string text_of(const confirmation& c) {
    return std::string(name_of(c.what)) + (c.code.empty() ? "" : " (" + json(c.code) + ")");
}

/// Publishes, and repeats what is unknown, until every message is confirmed.
inline void send(trial& t, any_publisher& to, std::vector<message> messages) {
    const time_limit limit(t.patience());
    while (!messages.empty()) {
        const auto answers = answers_to(to, messages);
        std::vector<message> unknown;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            expect(answers[i].what != confirmation::kind::refused,
                   "message " + t.name_of(messages[i]) + ", which a queue takes, was published", "confirmed or unknown",
                   text_of(answers[i]));
            if (answers[i].what == confirmation::kind::unknown) {
                unknown.push_back(std::move(messages[i]));
            }
        }
        expect(unknown.empty() || !limit.is_over(),
               "messages that a queue takes were published again and again for " + seconds_text(t.patience()),
               "all are confirmed", std::to_string(unknown.size()) + " are still unknown");
        messages = std::move(unknown);
    }
}

inline void send(trial& t, std::vector<message> messages) { send(t, t.publisher(), std::move(messages)); }

/// Messages named `first` to `last` in one lane, published in one call.
[[nodiscard]] inline std::vector<message> numbered(const trial& t, std::size_t first, std::size_t last,
                                                   const std::string& lane) {
    std::vector<message> out;
    for (auto i = first; i <= last; ++i) {
        out.push_back(t.make(i, lane));
    }
    return out;
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
