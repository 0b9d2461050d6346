// SPDX-License-Identifier: MIT
// The checks of arguments that have parts: the headers and the combination of fields of a draft, and each outcome.
#pragma once

#include <cstddef>
#include <string_view>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/detail/field_checks.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/outcome.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

inline void check_headers(const draft& d, std::size_t index, const limits& limit) {
    check_size({"draft", "headers", index}, d.headers.size(), limit.headers_max, "headers");
    for (const auto& [name, value] : d.headers) {
        check_required_name({"draft", "header name", index}, name, limit.name_max);
        check_size({"draft", "header value", index}, value.size(), limit.header_value_max, "bytes");
    }
}

inline void check_combination(const draft& d, std::size_t index) {
    if (!d.predecessor.is_nil()) {
        constexpr std::string_view because = "must be empty: a successor takes it over from its predecessor";
        check_empty({"draft", "key", index}, d.key.empty(), because);
        check_empty({"draft", "group", index}, d.group.empty(), because);
        check_empty({"draft", "lane", index}, d.lane.empty(), because);
    }
    if (d.result) {
        constexpr std::string_view because = "must be empty: the draft carries a result, so it is stored as succeeded";
        check_empty({"draft", "group", index}, d.group.empty(), because);
        check_empty({"draft", "lane", index}, d.lane.empty(), because);
        check_empty({"draft", "parent", index}, d.parent.is_nil(), because);
        check_empty({"draft", "predecessor", index}, d.predecessor.is_nil(), because);
    }
}

inline void check_capable(const draft& d, std::size_t index, const capabilities& can) {
    const auto unsupported = [&](std::string_view name) {
        throw error(error_kind::unsupported,
                    field{"draft", name, index}.str() + " is not supported by this store (see its capabilities)");
    };
    if (!d.group.empty() && !can.groups) {
        unsupported("group");
    }
    if (!d.lane.empty() && !can.lanes) {
        unsupported("lane");
    }
}

struct check_outcome {
    std::size_t index;
    const limits& limit;

    void check_error(std::string_view error) const { check_name({"settle", "error", index}, error, limit.error_max); }
    void operator()(const succeed& o) const {
        check_size({"settle", "result", index}, o.result.size(), limit.result_max, "bytes");
    }
    void operator()(const retry& o) const { check_error(o.error); }
    void operator()(const bury& o) const {
        check_error(o.error);
        check_size({"settle", "result", index}, o.result ? o.result->size() : 0, limit.result_max, "bytes");
    }
    void operator()(const release&) const {}
    void operator()(const advance& o) const {
        check_size({"settle", "progress", index}, o.progress.size(), limit.progress_max, "bytes");
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch
