// SPDX-License-Identifier: MIT
// Decides what an intake stores for a message: the drafts of its entries, or one draft that is buried with a code. Every
// draft of a plan is valid, so one bad message cannot keep the others from being stored.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/outbox/emitter.hpp>
#include <vouch/relay/consumer.hpp>
#include <vouch/relay/intake_options.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/run/detail/caught_exception.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

struct intake_plan {
    std::vector<draft> drafts{};
    std::string refusal{};       ///< not empty: the one draft is buried with this code
    bool leaves_payload = false; ///< the store cannot hold the payload; the broker should keep the message
    std::string key{};           ///< of an expired message: its dedup key
    /// Of an expired message: the other queues that have it if it has arrived in time before.
    std::vector<std::string> elsewhere{};
};

class intake_planner {
  public:
    intake_planner(const emitter& from, const intake_options& options, const capabilities& can) noexcept
        : emitter_(from), options_(options), can_(can) {}

    [[nodiscard]] intake_plan operator()(const received& r, time_point now) const {
        if (!r.malformed.empty()) {
            return refused(r.message, error_code(r.malformed), now);
        }
        if (const auto wrong = wrong_id(r.message.id); !wrong.empty()) {
            return refused(r.message, std::string(wrong), now);
        }
        if (r.message.payload.size() > can_.limits.payload_max) {
            return refused(r.message, "payload_too_large", now);
        }
        if (r.message.expires_at && *r.message.expires_at <= now) {
            auto out = refused(r.message, "expired", now);
            out.key = key_of(r.message);
            out.elsewhere = other_queues_of(r.message, now);
            return out;
        }
        try {
            return {.drafts = drafts_of(r.message, now)};
        } catch (const error& e) {
            const bool is_ours = e.kind() == error_kind::invalid_argument || e.kind() == error_kind::unsupported;
            return refused(r.message, is_ours ? "invalid_message" : std::string(name_of(e.kind())), now);
        } catch (const std::bad_alloc&) {
            throw; // says nothing about the message
        } catch (...) {
            return refused(r.message, caught_exception::current().code, now);
        }
    }

  private:
    [[nodiscard]] std::string key_of(const message& m) const { return options_.source + '/' + m.id; }

    /// The code of what is wrong with a message's id; empty if it can be part of a dedup key.
    [[nodiscard]] std::string_view wrong_id(const std::string& id) const {
        if (id.empty()) {
            return "no_message_id";
        }
        if (options_.source.size() + 1 + id.size() > can_.limits.name_max) {
            return "message_id_too_long";
        }
        return is_name(id) ? "" : "invalid_message_id";
    }

    [[nodiscard]] bool is_name(const std::string& text) const {
        try {
            check_required_name({"message", "name"}, text, can_.limits.name_max);
            return true;
        } catch (const error&) {
            return false;
        }
    }

    [[nodiscard]] std::vector<draft> drafts_of(const message& m, time_point now) const {
        auto what = options_.map(m);
        what.key = key_of(m);
        if (what.queue.empty()) {
            what.queue = options_.queue;
        }
        auto drafts = emitter_.drafts_of(std::span(&what, 1), now);
        validate(drafts, can_);
        return drafts;
    }

    /// The queues that get the message if it is not too late, except the one for dead entries.
    [[nodiscard]] std::vector<std::string> other_queues_of(message m, time_point now) const {
        m.expires_at.reset();
        std::vector<std::string> out;
        try {
            for (auto& d : drafts_of(m, now)) {
                if (d.queue != dead_queue()) {
                    out.push_back(std::move(d.queue));
                }
            }
        } catch (const std::bad_alloc&) {
            throw;
        } catch (...) { // NOLINT(bugprone-empty-catch): no queue takes it, so none has it
        }
        return out;
    }

    /// Keeps as much of the message as the store takes.
    [[nodiscard]] intake_plan refused(const message& m, std::string code, time_point now) const {
        intake_plan out{.refusal = std::move(code)};
        // A consumer leaves out the payload of what is too large for it.
        out.leaves_payload = m.payload.size() > can_.limits.payload_max || out.refusal == "message_too_large";
        draft d{.id = emitter_.fresh_id(),
                .queue = dead_queue(),
                .topic = is_name(m.topic) ? m.topic : "malformed",
                .payload = out.leaves_payload ? std::string{} : m.payload,
                .key = wrong_id(m.id).empty() ? key_of(m) : std::string{},
                .due_at = now,
                .trail = m.trail,
                .headers = m.headers};
        try {
            validate(d, can_);
        } catch (const error&) {
            d.trail.clear();
            d.headers.clear();
        }
        out.drafts.push_back(std::move(d));
        return out;
    }

    [[nodiscard]] const std::string& dead_queue() const noexcept {
        const auto& own = options_.dead_queue;
        return !own.empty() ? own : !options_.queue.empty() ? options_.queue : options_.source;
    }

    const emitter& emitter_;
    const intake_options& options_;
    const capabilities& can_;
};

} // namespace detail
} // namespace v0
} // namespace vouch
