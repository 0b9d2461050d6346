// SPDX-License-Identifier: MIT
// Checks of a refused call: the error's kind and message, and that the call has written nothing.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

#include "support.hpp"

namespace support {

inline constexpr std::string_view secret = "s3cret";

/// `count` bytes that must not occur in a message.
[[nodiscard]] inline std::string bytes(std::size_t count) {
    std::string out(secret);
    out.resize(count, 'x');
    return out;
}

[[nodiscard]] inline std::string with_control(char c) {
    std::string out(secret);
    out.push_back(c);
    return out;
}

inline void check_words(const vouch::error& e, std::string_view opening, const std::vector<std::string>& says) {
    const std::string message = e.what();
    CAPTURE(message);
    CHECK(message.starts_with(opening));
    for (const auto& words : says) {
        CAPTURE(words);
        CHECK(message.find(words) != std::string::npos);
    }
    CHECK(message.find(secret) == std::string::npos);
    CHECK(message.size() < 150);
}

/// The ticket of the claim that `check_refused` holds while it makes its call.
inline constexpr vouch::ticket held{.id = id_of(1), .epoch = 1};

/// Checks that `call(tx)` is refused with this message, and that the transaction stays usable and unchanged.
template <class Call>
void check_refused(std::string_view opening, const std::vector<std::string>& says, Call&& call) {
    vouch::memory::store store;
    put(store, draft_of(30));
    auto tx = store.begin();
    const std::array first{draft_of(1)};
    tx.enqueue(first, t0);
    REQUIRE(ticket_of(tx.claim(request(t0, {.only = id_of(1)})).front()) == held);
    const auto before = look(tx);
    const auto e = error_of([&] { call(tx); });
    REQUIRE(e);
    CHECK(e->kind() == vouch::error_kind::invalid_argument);
    CHECK(!e->is_transient());
    CHECK(!e->is_in_doubt());
    check_words(*e, opening, says);

    CHECK(look(tx) == before);
    const std::array second{draft_of(2)};
    tx.enqueue(second, t0);
    CHECK(settle_in(tx, held, vouch::succeed{}, t0).verdict == vouch::verdict::applied);
    tx.commit();
    CHECK(numbers(store.list(vouch::query::all("q"))) == list{30, 1, 2});
}

} // namespace support
