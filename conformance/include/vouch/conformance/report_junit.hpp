// SPDX-License-Identifier: MIT
// A report as JUnit XML, which most CI systems show: one test suite, one test case per clause.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <vouch/conformance/detail/markup.hpp>
#include <vouch/conformance/report.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

[[nodiscard]] inline std::string attribute(std::string_view name, std::string_view value) {
    return " " + std::string(name) + "=\"" + markup(value) + "\"";
}

[[nodiscard]] inline std::string seconds(double milliseconds) {
    const auto whole = static_cast<std::uint64_t>(milliseconds);
    auto rest = std::to_string(whole % 1000);
    return std::to_string(whole / 1000) + "." + std::string(3 - rest.size(), '0') + rest;
}

[[nodiscard]] inline std::string junit_case(const clause_report& c, std::string_view program) {
    auto out = "    <testcase" + attribute("classname", "vouch." + std::string(name_of(c.clause.layer))) +
               attribute("name", std::string(c.clause.id) + ": " + std::string(c.clause.sentence)) +
               attribute("time", seconds(c.milliseconds)) + ">";
    if (is_failure(c.result)) {
        const auto* const kind = c.result == result::fail ? "failure" : "error";
        out += "\n      <" + std::string(kind) + attribute("type", name_of(c.result)) +
               attribute("message", c.failure.what) + ">" + markup(failure_text(c, program)) + "</" + kind + ">\n    ";
    } else if (c.result != result::pass) {
        const auto why = std::string(name_of(c.result)) + (c.why.empty() ? "" : ": " + c.why);
        out += "<skipped" + attribute("message", why) + "/>";
    }
    return out + "</testcase>\n";
}

} // namespace detail

/// The whole report as JUnit XML. A clause that hangs or crashes is an error; one that was not run is skipped.
[[nodiscard]] inline std::string to_junit(const report& r, std::string_view program = "conformance") {
    double milliseconds = 0;
    std::string cases;
    for (const auto& c : r.clauses) {
        milliseconds += c.milliseconds;
        cases += detail::junit_case(c, program);
    }
    const auto errors = r.count(result::hangs) + r.count(result::crashes);
    const auto skipped = r.count(result::unsupported) + r.count(result::untested) + r.count(result::not_run);
    const auto counts = detail::attribute("tests", std::to_string(r.clauses.size())) +
                        detail::attribute("failures", std::to_string(r.count(result::fail))) +
                        detail::attribute("errors", std::to_string(errors)) +
                        detail::attribute("skipped", std::to_string(skipped)) +
                        detail::attribute("time", detail::seconds(milliseconds));
    const auto property = [](std::string_view name, std::string_view value) {
        return "      <property" + detail::attribute("name", name) + detail::attribute("value", value) + "/>\n";
    };
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + counts + ">\n  <testsuite" +
           detail::attribute("name", "vouch conformance: " + r.identity.name + " " + r.identity.version) + counts +
           ">\n    <properties>\n" + property("verdict", name_of(r.verdict())) +
           property("seed", std::to_string(r.options.seed)) + property("profile", name_of(r.options.profile)) +
           property("platform", r.platform) + property("capabilities", detail::capability_names(r.can)) +
           "    </properties>\n" + cases + "  </testsuite>\n</testsuites>\n";
}

} // namespace conformance
} // namespace v0
} // namespace vouch
