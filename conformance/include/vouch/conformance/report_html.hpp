// SPDX-License-Identifier: MIT
// A report as one web page without scripts or other files. It has a dark form and a form for print. Everything that
// comes from a store or its author is escaped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/families.hpp>
#include <vouch/conformance/detail/html_style.hpp>
#include <vouch/conformance/detail/markup.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/conformance/report_text.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

[[nodiscard]] inline std::string html_badge(std::string_view word) {
    return element("span", markup(word), "class=\"badge " + std::string(word) + "\"");
}

[[nodiscard]] inline std::string html_row(const std::vector<std::string>& cells, std::string_view kind = "td") {
    std::string out;
    for (const auto& cell : cells) {
        out += element(kind, cell);
    }
    return element("tr", out) + "\n";
}

/// What was tested: a row for each name and value.
[[nodiscard]] inline std::string html_facts(const report& r) {
    std::string out;
    const auto add = [&](std::string_view name, std::string_view value) {
        out += element("dt", name) + element("dd", markup(value)) + "\n";
    };
    add("Platform", r.platform);
    add("Profile", name_of(r.options.profile));
    add("Seed", std::to_string(r.options.seed));
    add("Capabilities", capability_names(r.can));
    add("Hooks", joined(r.hooks, ", "));
    for (const auto& m : r.missing) {
        add("Missing hook", m);
    }
    add("Clauses", counts_text(r));
    add("Done", tally_text(r.tally));
    if (r.tally.histories > 0) {
        add("Overlapping", std::to_string(100 * r.tally.overlapping / r.tally.histories) + " % of the histories");
    }
    if (r.tally.guessed_turns > 0) {
        add("Repeatable", repeatable_text(r.tally));
    }
    for (const auto& g : r.gaps) {
        add("Gap", g);
    }
    return element("dl", out);
}

/// One failure in full, as it is printed, below its one-line form.
[[nodiscard]] inline std::string html_failure(const clause_report& c, std::string_view program, bool is_open) {
    const auto id = std::string(c.clause.id);
    const auto title = element("b", markup(id)) + " " + html_badge(name_of(c.result)) + " " + markup(c.clause.sentence);
    std::string facts = element("dt", "What") + element("dd", markup(c.failure.what)) + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        facts += element("dt", "Expected") + element("dd", element("pre", markup(c.failure.expected))) + "\n";
        facts += element("dt", "Seen") + element("dd", element("pre", markup(c.failure.seen))) + "\n";
    }
    facts += element("dt", "Replay") + element("dd", element("code", markup(replay_command(c, program)))) + "\n";
    auto body = element("dl", facts);
    if (!c.failure.transcript.empty()) {
        body += element("pre", markup(c.failure.transcript), "class=\"transcript\"");
    }
    return element("details", element("summary", title) + body, "id=\"" + id + "\"" + (is_open ? " open" : "")) + "\n";
}

[[nodiscard]] inline std::string html_failures(const report& r, std::string_view program) {
    std::string out;
    for (const auto& f : failed_families(r)) {
        const auto count = f.failures.size();
        out += element("h3", markup(f.name) + ": " + std::to_string(count) + (count == 1 ? " clause" : " clauses"));
        for (const auto question : hints_for(f)) {
            out += element("p", "Hint: " + markup(question), "class=\"hint\"");
        }
        out += html_failure(*f.shown, program, true);
        for (const auto* const c : f.failures) {
            if (c != f.shown) {
                out += html_failure(*c, program, false);
            }
        }
    }
    return out.empty() ? "" : element("h2", "Failures") + "\n" + out;
}

/// The layers of the clauses, in their order.
[[nodiscard]] inline std::vector<layer> layers_of(const report& r) {
    std::vector<layer> out;
    for (const auto& c : r.clauses) {
        bool is_new = true;
        for (const auto one : out) {
            is_new = is_new && one != c.clause.layer;
        }
        if (is_new) {
            out.push_back(c.clause.layer);
        }
    }
    return out;
}

/// How many clauses of each layer have each result.
[[nodiscard]] inline std::string html_layers(const report& r) {
    std::vector<std::string> head{"Layer"};
    for (const auto one : all_results) {
        head.emplace_back(name_of(one));
    }
    head.emplace_back("calls");
    head.emplace_back("ms");
    auto rows = html_row(head, "th");
    for (const auto l : layers_of(r)) {
        const std::string name(name_of(l));
        std::vector<std::string> cells{element("a", name, "href=\"#layer-" + name + "\"")};
        for (const auto one : all_results) {
            std::size_t count = 0;
            for (const auto& c : r.clauses) {
                count += c.clause.layer == l && c.result == one ? 1U : 0U;
            }
            cells.push_back(count == 0 ? "" : std::to_string(count));
        }
        std::uint64_t calls = 0;
        double milliseconds = 0;
        for (const auto& c : r.clauses) {
            calls += c.clause.layer == l ? c.calls : 0U;
            milliseconds += c.clause.layer == l ? c.milliseconds : 0.0;
        }
        cells.push_back(std::to_string(calls));
        cells.push_back(std::to_string(static_cast<std::uint64_t>(milliseconds)));
        rows += html_row(cells);
    }
    return element("h2", "Layers") + element("table", rows, "class=\"layers\"") + "\n";
}

[[nodiscard]] inline std::string html_clauses(const report& r) {
    std::string out = element("h2", "Clauses") + "\n";
    for (const auto l : layers_of(r)) {
        const std::string name(name_of(l));
        auto rows = html_row({"Clause", "Result", "Level", "Needs", "Sentence"}, "th");
        for (const auto& c : r.clauses) {
            if (c.clause.layer == l) {
                const auto id = markup(c.clause.id);
                const auto why = c.why.empty() ? "" : element("div", markup(c.why), "class=\"why\"");
                rows += html_row({is_failure(c.result) ? element("a", id, "href=\"#" + id + "\"") : id,
                                  html_badge(name_of(c.result)), c.clause.level == level::must ? "MUST" : "MAY",
                                  markup(name_of(c.clause.needs)), markup(c.clause.sentence) + why});
            }
        }
        out += element("h3", name, "id=\"layer-" + name + "\"") + element("table", rows, "class=\"clauses\"") + "\n";
    }
    return out;
}

/// A whole page. The title is text, the content is HTML.
[[nodiscard]] inline std::string html_page(std::string_view title, const std::string& content) {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
           element("title", markup(title)) + "\n" + element("style", html_style) + "\n</head>\n<body>\n<main>\n" +
           content + "</main>\n</body>\n</html>\n";
}

} // namespace detail

/// The whole report as one web page.
[[nodiscard]] inline std::string to_html(const report& r, std::string_view program = "conformance") {
    const auto store = r.identity.name + " " + r.identity.version;
    const auto verdict = name_of(r.verdict());
    const auto failed = detail::failed_ids(r);
    return detail::html_page(
        store + ": " + std::string(verdict),
        detail::element("h1", detail::markup(store) + " " + detail::html_badge(verdict)) + "\n" +
            detail::element("p", "Checked against the store contract of vouch, level " +
                                     std::to_string(contract_level) + ".") +
            "\n" + detail::html_facts(r) + detail::html_layers(r) + detail::html_failures(r, program) +
            (failed.empty() ? "" : detail::element("p", "Failed: " + detail::markup(failed)) + "\n") +
            detail::html_clauses(r));
}

} // namespace conformance
} // namespace v0
} // namespace vouch
