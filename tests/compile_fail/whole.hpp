// SPDX-License-Identifier: MIT
// A store that has everything, so that a file which takes one thing away fails for that reason alone. To take something
// away, derive and declare a deleted function of its name: it hides the one of the base.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

namespace whole {

struct reader {
    [[nodiscard]] std::optional<vouch::entry> find(const vouch::id&) const;
    [[nodiscard]] std::vector<vouch::entry> list(const vouch::query&) const;
    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const;
    [[nodiscard]] std::optional<vouch::time_point> next_due(std::string_view queue) const;
};

struct writer : reader {
    std::vector<vouch::receipt> enqueue(std::span<const vouch::draft>, vouch::time_point now);
    std::vector<vouch::entry> claim(const vouch::claim_request&);
    std::vector<vouch::settlement> settle(std::span<const vouch::settle>, vouch::time_point now);
    std::vector<vouch::verdict> extend(std::span<const vouch::ticket>, vouch::time_point now, vouch::duration lease);
    vouch::verdict nudge(const vouch::id&, vouch::time_point now);
    vouch::verdict cancel(const vouch::id&, std::string_view error, vouch::time_point now);
    std::size_t purge(const vouch::purge_request&);
};

struct transaction : writer {
    void commit();
};

template <class Transaction>
struct store_of : reader {
    using transaction = Transaction;
    static constexpr int contract_level = vouch::contract_level;

    transaction begin();
    [[nodiscard]] vouch::capabilities capabilities() const;
};

using store = store_of<transaction>;

} // namespace whole
