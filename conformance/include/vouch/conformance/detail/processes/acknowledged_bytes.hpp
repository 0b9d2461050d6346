// SPDX-License-Identifier: MIT
// What a thread was told about its commits, as a message to another process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/conformance/detail/threads/numbered_work.hpp>
#include <vouch/contract/bytes.hpp>
#include <vouch/contract/detail/byte_stream.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

[[nodiscard]] inline std::string bytes_of(const acknowledged& all) {
    vouch::detail::byte_writer out;
    out.number(all.stored.size());
    for (const auto& d : all.stored) {
        for_each_field([&](auto, const auto& field) { out.pass(field); }, d);
    }
    out.pass(all.duplicates);
    out.number(all.claims.size());
    for (const auto& c : all.claims) {
        out.out += to_bytes(c.as);
        out.number(c.number);
        out.number(c.end ? c.end->index() + 1 : 0);
    }
    out.pass(all.cancelled);
    out.pass(all.groups);
    return std::move(out.out);
}

/// The outcome with this index, as `mixed_worker` settles.
[[nodiscard]] inline outcome numbered_outcome(std::size_t index, const ticket& of) {
    switch (index) {
    case 0: return succeed{mark_of(of)};
    case 1: return retry{"failed", at(0)};
    case 2: return bury{"buried", {}};
    case 3: return release{};
    default: return advance{mark_of(of), {}};
    }
}

[[nodiscard]] inline acknowledged acknowledged_in(std::string_view bytes) {
    acknowledged out;
    vouch::detail::byte_reader in{bytes};
    for (auto left = in.number(); left > 0; --left) {
        for_each_field([&](auto, auto& field) { in.pass(field); }, out.stored.emplace_back());
    }
    in.pass(out.duplicates);
    for (auto left = in.number(); left > 0; --left) {
        auto& c = out.claims.emplace_back();
        c.as = take_entry(in.left);
        c.number = in.number();
        if (const auto index = in.number(); index > 0) {
            c.end = numbered_outcome(index - 1, ticket_of(c.as));
        }
    }
    in.pass(out.cancelled);
    in.pass(out.groups);
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
