// SPDX-License-Identifier: MIT
// The argument of a handler: the claimed entry, and a way to emit follow-ups. Follow-ups are enqueued in the transaction
// that settles the entry, so an outcome and its follow-ups are committed together or not at all.
//
// A delivery belongs to one call of one handler and is used by one thread.
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
#include <vouch/outbox/emission.hpp>
#include <vouch/outbox/emitter.hpp>
#include <vouch/run/failure.hpp>

namespace vouch {
inline namespace v0 {

class delivery {
  public:
    /// Entry and emitter must outlive the delivery.
    delivery(const vouch::entry& claimed, const emitter& from, time_point now, std::stop_token stop = {})
        : entry_(claimed), emitter_(from), now_(now), stop_(std::move(stop)) {}

    delivery(const delivery&) = delete; // an emission on a copy would be lost
    delivery& operator=(const delivery&) = delete;

    [[nodiscard]] const vouch::entry& entry() const noexcept { return entry_; }
    /// Use this as the idempotency key in other systems; for a saga's command use the header `saga-key`.
    [[nodiscard]] const vouch::id& id() const noexcept { return entry_.id; }
    [[nodiscard]] const std::string& queue() const noexcept { return entry_.queue; }
    [[nodiscard]] const std::string& topic() const noexcept { return entry_.topic; }
    [[nodiscard]] const std::string& payload() const noexcept { return entry_.payload; }
    [[nodiscard]] const id_list& trail() const noexcept { return entry_.trail; }
    [[nodiscard]] std::uint32_t attempt() const noexcept { return entry_.attempts; } ///< counted from 1
    [[nodiscard]] time_point now() const noexcept { return now_; }                   ///< when the handler was called
    [[nodiscard]] time_point time() const { return emitter_.now(); }                 ///< the present time

    /// A stop is requested when the worker stops or the claim is lost: return early if possible. Handlers are never
    /// killed.
    [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }

    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept {
        for (const auto& [key, value] : entry_.headers) {
            if (key == name) {
                return value;
            }
        }
        return std::nullopt;
    }

    /// The payload as a value. An entry whose bytes the codec rejects is dead, with the error `undecodable`.
    template <decodable T>
    [[nodiscard]] T as() const {
        try {
            return codec<T>::decode(entry_.payload);
        } catch (const failure&) {
            throw; // the codec chose its own code
        } catch (const std::bad_alloc&) {
            throw; // says nothing about the bytes
        } catch (...) {
            throw reject("undecodable");
        }
    }

    /// Emits a follow-up if the outcome is succeed or advance. It continues this delivery's trail. Returns the
    /// emission's id. An entry whose follow-up is invalid is dead, with the error `invalid_emission` or `unrouted`.
    vouch::id emit(emission e) {
        emissions_.push_back({std::move(e), {.emission = emitter_.fresh_id(), .at = emitter_.now()}});
        return emissions_.back().stamp.emission;
    }

    /// A word about the outcome, for the event that reports it. It is not stored.
    void tag(std::string word) { tag_ = std::move(word); }
    [[nodiscard]] const std::string& tag() const noexcept { return tag_; }

    /// The text of an exception that the handler has converted into an outcome itself. Only observers see it, and only
    /// with the option `exception_text`.
    void explain(std::string text) { text_ = std::move(text); }
    [[nodiscard]] const std::string& explanation() const noexcept { return text_; }

    /// The drafts of everything emitted so far.
    [[nodiscard]] std::vector<draft> emitted() const {
        std::vector<draft> out;
        for (const auto& e : emissions_) {
            emitter_.append_drafts(out, e.what, e.stamp, entry_.trail);
        }
        return out;
    }

  private:
    struct emitted_one {
        emission what{};
        emitter::stamp stamp{}; ///< its due time and its expiry count from the call of `emit`
    };

    const vouch::entry& entry_;
    const emitter& emitter_;
    time_point now_;
    std::stop_token stop_;
    std::vector<emitted_one> emissions_;
    std::string tag_;
    std::string text_;
};

} // namespace v0
} // namespace vouch
