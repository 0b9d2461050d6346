// SPDX-License-Identifier: MIT
// What a handler is handed: the claimed entry, and a way to emit follow-ups that are enqueued in the transaction that
// settles it, so that there is never an outcome without its follow-ups nor the other way round.
//
// A delivery belongs to one call of one handler; it is used by one thread.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/outbox/codec.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/run/failure.hpp>

namespace vouch {
inline namespace v0 {

class delivery {
  public:
    delivery(const vouch::entry& claimed, const outbox& from, time_point now, std::stop_token stop = {})
        : entry_(claimed), outbox_(from), now_(now), stop_(std::move(stop)) {}

    delivery(const delivery&) = delete; // an emission on a copy would be lost
    delivery& operator=(const delivery&) = delete;

    [[nodiscard]] const vouch::entry& entry() const noexcept { return entry_; }
    /// The idempotency key to hand on; of a saga's command that is the header `saga-key`.
    [[nodiscard]] const vouch::id& id() const noexcept { return entry_.id; }
    [[nodiscard]] const std::string& queue() const noexcept { return entry_.queue; }
    [[nodiscard]] const std::string& topic() const noexcept { return entry_.topic; }
    [[nodiscard]] const std::string& payload() const noexcept { return entry_.payload; }
    [[nodiscard]] const id_list& trail() const noexcept { return entry_.trail; }
    [[nodiscard]] std::uint32_t attempt() const noexcept { return entry_.attempts; } ///< counted from 1
    [[nodiscard]] time_point now() const noexcept { return now_; }                   ///< when the handler was called
    [[nodiscard]] time_point time() const { return outbox_.now(); }                  ///< what the clock says now

    /// Asked to stop: what can be cut short should be. Nobody kills a handler.
    [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }

    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept {
        for (const auto& [key, value] : entry_.headers) {
            if (key == name) {
                return value;
            }
        }
        return std::nullopt;
    }

    /// The payload as a value. Bytes the codec rejects end the entry as dead with `undecodable`.
    template <decodable T>
    [[nodiscard]] T as() const {
        try {
            return codec<T>::decode(entry_.payload);
        } catch (const failure&) {
            throw; // the codec chose its own words
        } catch (const std::bad_alloc&) {
            throw; // says nothing about the bytes
        } catch (...) {
            throw reject("undecodable");
        }
    }

    /// Emits below this delivery's trail, if the handler ends well (succeed or advance). Returns the emission's id. An
    /// emission that turns out invalid ends the entry as dead with `invalid_emission` or `unrouted`.
    vouch::id emit(emission e) {
        emissions_.push_back({std::move(e), outbox_.fresh_id(), outbox_.now()});
        return emissions_.back().id;
    }

    /// A word about the outcome, for the event that reports it. Nothing of it is stored.
    void tag(std::string word) { tag_ = std::move(word); }
    [[nodiscard]] const std::string& tag() const noexcept { return tag_; }

    /// The text of an exception that the handler turned into an outcome itself. It reaches observers where the runner
    /// or the worker was asked for exception texts, and nothing else.
    void explain(std::string text) { text_ = std::move(text); }
    [[nodiscard]] const std::string& explanation() const noexcept { return text_; }

    /// The drafts of everything emitted so far.
    [[nodiscard]] std::vector<draft> emitted() const {
        std::vector<draft> out;
        for (const auto& e : emissions_) {
            outbox_.append_drafts(out, e.what, entry_.trail, e.id, e.at);
        }
        return out;
    }

  private:
    struct emitted_one {
        emission what{};
        vouch::id id{};
        time_point at{}; ///< what its due time and its expiry count from: a handler may have run for long
    };

    const vouch::entry& entry_;
    const outbox& outbox_;
    time_point now_;
    std::stop_token stop_;
    std::vector<emitted_one> emissions_;
    std::string tag_;
    std::string text_;
};

} // namespace v0
} // namespace vouch
