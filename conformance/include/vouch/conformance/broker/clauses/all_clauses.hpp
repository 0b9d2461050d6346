// SPDX-License-Identifier: MIT
// Every clause of the kit, in the order in which they are run: later clauses rely on what earlier ones check.
#pragma once

#include <iterator>
#include <vector>

#include <vouch/conformance/broker/clause.hpp>
#include <vouch/conformance/broker/clauses/acknowledge.hpp>
#include <vouch/conformance/broker/clauses/cancel.hpp>
#include <vouch/conformance/broker/clauses/end_to_end.hpp>
#include <vouch/conformance/broker/clauses/publish_answers.hpp>
#include <vouch/conformance/broker/clauses/publish_order.hpp>
#include <vouch/conformance/broker/clauses/publish_parts.hpp>
#include <vouch/conformance/broker/clauses/receive.hpp>
#include <vouch/conformance/broker/clauses/receive_faults.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

[[nodiscard]] inline const std::vector<clause>& all_clauses() {
    static const auto all = [] {
        std::vector<clause> out;
        const auto add = [&](const auto& some) { out.insert(out.end(), std::begin(some), std::end(some)); };
        add(detail::publish_answers);
        add(detail::publish_parts);
        add(detail::publish_order);
        add(detail::receive_waits);
        add(detail::receive_acknowledge);
        add(detail::receive_cancel);
        add(detail::receive_faults);
        add(detail::end_to_end);
        return out;
    }();
    return all;
}

} // namespace conformance::broker
} // namespace v0
} // namespace vouch
