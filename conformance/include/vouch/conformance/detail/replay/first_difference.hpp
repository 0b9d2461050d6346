// SPDX-License-Identifier: MIT
// Compares everything that can be read from a store with the model, and writes the first difference as a line of code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/replay/as_code.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/expect.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/query.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// A query and the code that makes it.
struct named_query {
    std::string code{};
    vouch::query query{};
};

/// The ids, queues, keys, groups and parents that drafts have used, and the queries that read them.
class known_names {
  public:
    void add(const draft& d) {
        ids_.insert(d.id);
        queues_.insert(d.queue);
        const auto queue = as_literal(d.queue);
        add_query("query::all(" + queue + ")", query::all(d.queue));
        add_query("query::live(" + queue + ")", query::live(d.queue));
        add_query("query::dead(" + queue + ")", query::dead(d.queue));
        if (!d.key.empty()) {
            add_query("query::keyed(" + queue + ", " + as_literal(d.key) + ")", query::keyed(d.queue, d.key));
        }
        if (!d.group.empty()) {
            add_query("query::members(" + as_literal(d.group) + ")", query::members(d.group));
        }
        if (!d.parent.is_nil()) {
            add_query("query::children(" + members::value_of(d.parent) + ")", query::children(d.parent));
        }
    }
    /// Returns whether the query is new.
    bool add_query(std::string code, const vouch::query& q) {
        const bool is_new = codes_.insert(code).second;
        if (is_new) {
            queries_.push_back({std::move(code), q});
        }
        return is_new;
    }
    [[nodiscard]] const std::set<id>& ids() const noexcept { return ids_; }
    [[nodiscard]] const std::set<std::string>& queues() const noexcept { return queues_; }
    [[nodiscard]] const std::vector<named_query>& queries() const noexcept { return queries_; }

  private:
    std::set<id> ids_{};
    std::set<std::string> queues_{};
    std::set<std::string> codes_{};
    std::vector<named_query> queries_{};
};

/// `expect(code, "wanted"); // seen: ...`, or nothing if they are equal.
template <class T>
[[nodiscard]] std::string difference(const std::string& code, const T& seen, const T& wanted) {
    return seen == wanted
               ? ""
               : "expect(" + code + ", " + as_literal(show_briefly(wanted)) + "); // seen: " + show_briefly(seen);
}

[[nodiscard]] inline std::string difference(const std::string& code, const entry& seen, const entry& wanted) {
    std::string out;
    for_each_field([&](std::string_view name, const auto& x,
                       const auto& y) { out = out.empty() ? difference(code + "." + std::string(name), x, y) : out; },
                   seen, wanted);
    return out;
}

/// The first read that differs from the model, as a line of code; empty if there is none. `code` is the read that is made
/// at the moment.
template <class Reader>
[[nodiscard]] std::string first_difference(const Reader& reader, const std::string& name, const model& wanted,
                                           const known_names& known, std::string& code) {
    std::string out;
    for (const auto& one : known.ids()) {
        code = name + ".find(" + members::value_of(one) + ")";
        const auto seen = reader.find(one);
        const auto* const e = wanted.find(one);
        out = seen && e != nullptr ? difference(code + ".value()", *seen, *e)
                                   : difference(code + ".has_value()", seen.has_value(), e != nullptr);
        if (!out.empty()) {
            return out;
        }
    }
    for (const auto& q : known.queries()) {
        code = name + ".list(" + q.code + ")";
        const auto seen = reader.list(q.query);
        const auto right = wanted.list(q.query);
        out = difference("ids_of(" + code + ")", ids_of(seen), ids_of(right));
        for (std::size_t i = 0; i < right.size() && out.empty(); ++i) {
            out = difference(code + ".at(" + std::to_string(i) + ")", seen[i], right[i]);
        }
        if (!out.empty()) {
            return out;
        }
    }
    for (const auto& queue : known.queues()) {
        const auto in_queue = "(" + as_literal(queue) + ")";
        code = name + ".counts" + in_queue;
        out = difference(code, reader.counts(queue), wanted.counts(queue));
        if (!out.empty()) {
            return out;
        }
        code = name + ".next_due" + in_queue;
        out = difference(code, reader.next_due(queue), wanted.next_due(queue));
        if (!out.empty()) {
            return out;
        }
    }
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
