// SPDX-License-Identifier: MIT
// The kill matrix as a web page: a row for each mutant, with the clauses that killed it.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <vouch/conformance.hpp>

#include "subject.hpp"

namespace mutants {

namespace detail {

namespace html = vouch::conformance::detail;

/// A row: the name, the clauses that failed, and the result.
[[nodiscard]] inline std::string matrix_row(const subject& c, std::size_t seeds) {
    std::set<std::string> clauses;
    std::string text;
    for (const auto& kill : c.kills) {
        if (clauses.insert(kill.clause).second) {
            text += (text.empty() ? "" : " ") + kill.clause;
        }
    }
    std::vector<std::string> cells{html::markup(c.name), html::markup(text)};
    const auto killed = c.seeds_that_kill();
    cells.push_back(c.must_pass ? "" : std::to_string(killed) + "/" + std::to_string(seeds));
    const bool is_right = c.error.empty() && (c.must_pass ? killed == 0 : killed == seeds);
    cells.push_back(html::html_badge(is_right ? "pass" : "fail"));
    return html::html_row(cells);
}

} // namespace detail

/// The matrix of all that were tested with that many seeds.
[[nodiscard]] inline std::string matrix_page(const std::vector<subject>& all, std::size_t seeds) {
    namespace html = vouch::conformance::detail;
    std::string content =
        html::element("h1", "Kill matrix") +
        html::element("p", "A mutant is a store with one defect. It passes here if the suite fails it "
                           "with every seed; a conforming store passes if the suite passes it.") +
        "\n";
    for (const bool conforming : {false, true}) {
        auto rows = html::html_row({"Store", "Clauses", "Seeds", "Result"}, "th");
        std::size_t count = 0;
        for (const auto& c : all) {
            if (c.must_pass == conforming) {
                rows += detail::matrix_row(c, seeds);
                count += 1;
            }
        }
        content += html::element("h2", (conforming ? "Conforming stores: " : "Mutants: ") + std::to_string(count)) +
                   html::element("table", rows, "class=\"clauses\"") + "\n";
    }
    return html::html_page("Kill matrix", content);
}

} // namespace mutants
