// SPDX-License-Identifier: MIT
// A clause: a sentence of the rules for publishers and consumers, with the check that a client obeys it.
#pragma once

#include <cstdint>
#include <string_view>

#include <vouch/conformance/broker/hooks.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

class trial; ///< what a check works with; for the kit only

/// The hook of the fixture without which a clause is not tested.
enum class needs : std::uint8_t {
    nothing,
    cut,
    restart,
    unroutable_topic,
    message_max,
    unacknowledged_max,
    publish_malformed
};

[[nodiscard]] constexpr std::string_view name_of(needs n) noexcept {
    switch (n) {
    case needs::nothing: return "-";
    case needs::cut: return "cut";
    case needs::restart: return "restart";
    case needs::unroutable_topic: return "unroutable_topic";
    case needs::message_max: return "message_max";
    case needs::unacknowledged_max: return "unacknowledged_max";
    case needs::publish_malformed: return "publish_malformed";
    }
    return "?";
}

[[nodiscard]] inline bool has(const hooks& of, needs n) noexcept {
    switch (n) {
    case needs::nothing: return true;
    case needs::cut: return bool(of.cut);
    case needs::restart: return bool(of.restart);
    case needs::unroutable_topic: return bool(of.unroutable_topic);
    case needs::message_max: return bool(of.message_max);
    case needs::unacknowledged_max: return bool(of.unacknowledged_max);
    case needs::publish_malformed: return bool(of.publish_malformed);
    }
    return false;
}

struct clause {
    std::string_view id; ///< "PUB-01"
    broker::needs needs;
    std::string_view rules; ///< the numbers of the rules: "publisher 1, 5"
    std::string_view sentence;
    std::string_view hint; ///< where to look if it fails
    void (*check)(trial&);
};

} // namespace conformance::broker
} // namespace v0
} // namespace vouch
