// SPDX-License-Identifier: MIT
// A report as JSON. conformance/REPORT.md describes its members. A change that removes a member or changes its meaning
// raises `report_schema`; a new member does not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/conformance/detail/families.hpp>
#include <vouch/conformance/detail/json.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/contract/capability.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// The version of the JSON report's schema, its member `schema`.
inline constexpr std::uint64_t report_schema = 1;

namespace detail {

[[nodiscard]] inline std::string json_of(const clause_report& c) {
    json_object out;
    out.text("id", c.clause.id).text("layer", name_of(c.clause.layer)).text("result", name_of(c.result));
    out.text("level", c.clause.level == level::must ? "MUST" : "MAY").text("needs", name_of(c.clause.needs));
    out.text("sentence", c.clause.sentence);
    out.number("ms", static_cast<std::uint64_t>(c.milliseconds));
    if (is_failure(c.result)) {
        out.text("what", c.failure.what).text("seen", c.failure.seen).text("expected", c.failure.expected);
        out.text("transcript", c.failure.transcript).number("seed", c.seed);
    }
    if (c.result == result::untested) {
        out.text("why", c.why);
    }
    return out.str();
}

[[nodiscard]] inline std::string json_of(const tally& t) {
    json_object out;
    for (const auto& [name, counter] : tally_counters) {
        out.number(name, t.*counter);
    }
    return out.str();
}

} // namespace detail

/// The whole report as JSON.
[[nodiscard]] inline std::string to_json(const report& r) {
    detail::json_object answers;
    for (const auto& [name, count] : r.tally.answers) {
        answers.number(name, count);
    }
    detail::json_object counts;
    for (const auto one : all_results) {
        counts.number(name_of(one), r.count(one));
    }
    const auto word = [](const std::string& text) { return detail::json(text); };
    const auto words = [&](const std::vector<std::string>& list) { return detail::json_list(list, ", ", word); };
    detail::json_object out;
    out.number("schema", report_schema).number("contract_level", static_cast<std::uint64_t>(contract_level));
    out.text("store", r.identity.name).text("version", r.identity.version);
    out.text("verdict", name_of(r.verdict())).text("profile", name_of(r.options.profile));
    out.number("seed", r.options.seed).text("platform", r.platform);
    out.text("capabilities", detail::capability_names(r.can));
    out.raw("hooks", words(r.hooks)).raw("missing_hooks", words(r.missing)).raw("gaps", words(r.gaps));
    out.raw("counts", counts.str()).raw("done", detail::json_of(r.tally)).raw("answers", answers.str());
    out.raw("clauses", detail::json_list(r.clauses, ",\n  ", [](const auto& c) { return detail::json_of(c); }));
    return out.str() + "\n";
}

} // namespace conformance
} // namespace v0
} // namespace vouch
