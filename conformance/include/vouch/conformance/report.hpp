// SPDX-License-Identifier: MIT
// What came of a run: a result per clause, what was done, and the verdict; as text and as JSON. One seed gives one
// report, but for the times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/options.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

enum class result : std::uint8_t {
    pass,
    fail,
    unsupported, ///< the store does not declare the capability
    untested,    ///< the fixture lacks a hook, or the machine something
    not_run,     ///< the options left it out
};

[[nodiscard]] constexpr std::string_view name_of(result r) noexcept {
    switch (r) {
    case result::pass: return "pass";
    case result::fail: return "fail";
    case result::unsupported: return "unsupported";
    case result::untested: return "untested";
    case result::not_run: return "not-run";
    }
    return "?";
}

struct clause_report {
    conformance::clause clause{};
    conformance::result result = conformance::result::not_run;
    std::string why{}; ///< of `untested`
    conformance::failure failure{};
    std::uint64_t seed = 0;  ///< that replays it
    std::uint64_t calls = 0; ///< of the store's transactions
    double milliseconds = 0;
};

enum class conformity : std::uint8_t {
    conformant, ///< every clause that applies holds
    partial,    ///< none fails, but a MUST was not tested
    failing,
};

[[nodiscard]] constexpr std::string_view name_of(conformity c) noexcept {
    switch (c) {
    case conformity::conformant: return "conformant";
    case conformity::partial: return "partial";
    case conformity::failing: return "failing";
    }
    return "?";
}

struct report {
    conformance::identity identity{};
    conformance::options options{};
    vouch::capabilities can{};
    std::vector<std::string> hooks{};   ///< those the fixture has
    std::vector<std::string> missing{}; ///< those it has not, and what that costs
    std::string platform{};
    std::vector<clause_report> clauses{};
    conformance::tally tally{};
    std::vector<std::string> gaps{}; ///< what was not seen often enough for a verdict

    [[nodiscard]] std::size_t count(result r) const {
        std::size_t n = 0;
        for (const auto& c : clauses) {
            n += c.result == r ? 1U : 0U;
        }
        return n;
    }

    [[nodiscard]] conformity verdict() const {
        bool complete = gaps.empty();
        for (const auto& c : clauses) {
            if (c.result == result::fail) {
                return conformity::failing;
            }
            const bool was_skipped = c.result == result::untested || c.result == result::not_run;
            complete = complete && !(was_skipped && c.clause.level == level::must);
        }
        return complete ? conformity::conformant : conformity::partial;
    }
};

namespace detail {

[[nodiscard]] inline std::string capability_names(const capabilities& can) {
    std::string out;
    for (const auto n : {needs::groups, needs::lanes, needs::wakes, needs::durable, needs::shared}) {
        if (has(can, n)) {
            out += (out.empty() ? "" : ", ") + std::string(name_of(n));
        }
    }
    return out.empty() ? "none" : out;
}

[[nodiscard]] inline std::string joined(const std::vector<std::string>& words, std::string_view between) {
    std::string out;
    for (const auto& word : words) {
        out += (out.empty() ? "" : std::string(between)) + word;
    }
    return out.empty() ? "none" : out;
}

[[nodiscard]] inline std::string indented(const std::string& text) {
    std::string out = "    ";
    for (const char c : text) {
        out += c;
        if (c == '\n') {
            out += "    ";
        }
    }
    return out;
}

} // namespace detail

/// Everything a backend author needs to know of one failure.
[[nodiscard]] inline std::string failure_text(const clause_report& c, std::string_view program) {
    std::string out = std::string(c.clause.id) + " FAILED: " + std::string(c.clause.sentence) + "\n";
    out += "  " + c.failure.what + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        out += "  expected: " + c.failure.expected + "\n";
        out += "  seen:     " + c.failure.seen + "\n";
    }
    out += "  replay:   " + std::string(program) + " --clause " + std::string(c.clause.id) + " --seed " +
           std::to_string(c.seed) + "\n";
    if (!c.failure.story.empty()) {
        out += detail::indented(c.failure.story) + "\n";
    }
    return out;
}

[[nodiscard]] inline std::string to_text(const report& r, std::string_view program = "conformance") {
    std::string out;
    for (const auto& c : r.clauses) {
        if (c.result == result::fail) {
            out += failure_text(c, program) + "\n";
        } else if (c.result == result::untested) {
            out += std::string(c.clause.id) + " untested: " + c.why + "\n";
        }
    }
    const auto& t = r.tally;
    out += "store         " + r.identity.name + " " + r.identity.version + "\n";
    out += "capabilities  " + detail::capability_names(r.can) + "\n";
    out += "hooks         " + detail::joined(r.hooks, ", ") + "\n";
    for (const auto& m : r.missing) {
        out += "missing hook  " + m + "\n";
    }
    out += "platform      " + r.platform + "\n";
    out +=
        "profile       " + std::string(name_of(r.options.profile)) + ", seed " + std::to_string(r.options.seed) + "\n";
    out += "clauses       " + std::to_string(r.count(result::pass)) + " pass, " +
           std::to_string(r.count(result::fail)) + " fail, " + std::to_string(r.count(result::unsupported)) +
           " unsupported, " + std::to_string(r.count(result::untested)) + " untested, " +
           std::to_string(r.count(result::not_run)) + " not run\n";
    out += "done          " + std::to_string(t.commands) + " model commands, " + std::to_string(t.interleavings) +
           " interleavings, " + std::to_string(t.histories) + " histories, " + std::to_string(t.crash_points) +
           " crash points, " + std::to_string(t.faults) + " faults, " + std::to_string(t.simulated_seconds / 86'400) +
           " virtual days\n";
    if (t.histories > 0) {
        out += "overlapping   " + std::to_string(100 * t.overlapping / t.histories) + " % of the histories\n";
    }
    for (const auto& g : r.gaps) {
        out += "gap           " + g + "\n";
    }
    return out + "verdict       " + std::string(name_of(r.verdict())) + "\n";
}

namespace detail {

[[nodiscard]] inline std::string json(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += {'\\', c};
        } else if (byte < 0x20 || byte >= 0x7f) {
            out += std::string("\\u00") + digits[byte >> 4U] + digits[byte & 15U];
        } else {
            out += c;
        }
    }
    return out + "\"";
}

class json_object {
  public:
    json_object& text(std::string_view name, std::string_view value) { return raw(name, json(value)); }
    json_object& number(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
    json_object& raw(std::string_view name, const std::string& value) {
        out_ += std::string(out_.empty() ? "" : ", ") + json(name) + ": " + value;
        return *this;
    }
    [[nodiscard]] std::string str() const { return "{" + out_ + "}"; }

  private:
    std::string out_{};
};

template <class Items, class Each>
[[nodiscard]] std::string json_list(const Items& items, std::string_view between, Each&& each) {
    std::string out;
    for (const auto& item : items) {
        out += (out.empty() ? "" : std::string(between)) + each(item);
    }
    return "[" + out + "]";
}

} // namespace detail

[[nodiscard]] inline std::string to_json(const report& r) {
    using detail::json;
    const auto& t = r.tally;
    detail::json_object done;
    done.number("commands", t.commands)
        .number("interleavings", t.interleavings)
        .number("histories", t.histories)
        .number("overlapping", t.overlapping)
        .number("crash_points", t.crash_points)
        .number("faults", t.faults)
        .number("virtual_seconds", t.simulated_seconds);
    detail::json_object answers;
    for (const auto& [name, count] : t.answers) {
        answers.number(name, count);
    }
    const auto clause = [](const clause_report& c) {
        detail::json_object out;
        out.text("id", c.clause.id).text("layer", name_of(c.clause.layer)).text("result", name_of(c.result));
        out.text("level", c.clause.level == level::must ? "MUST" : "MAY").text("needs", name_of(c.clause.needs));
        out.text("sentence", c.clause.sentence).number("ms", static_cast<std::uint64_t>(c.milliseconds));
        if (c.result == result::fail) {
            out.text("what", c.failure.what).text("seen", c.failure.seen).text("expected", c.failure.expected);
            out.number("seed", c.seed);
        }
        if (c.result == result::untested) {
            out.text("why", c.why);
        }
        return out.str();
    };
    const auto word = [](const std::string& text) { return json(text); };
    detail::json_object out;
    out.text("store", r.identity.name).text("version", r.identity.version);
    out.text("verdict", name_of(r.verdict())).text("profile", name_of(r.options.profile));
    out.number("seed", r.options.seed).text("platform", r.platform);
    out.text("capabilities", detail::capability_names(r.can));
    out.raw("hooks", detail::json_list(r.hooks, ", ", word)).raw("gaps", detail::json_list(r.gaps, ", ", word));
    out.raw("done", done.str()).raw("answers", answers.str());
    out.raw("clauses", detail::json_list(r.clauses, ",\n  ", clause));
    return out.str() + "\n";
}

} // namespace conformance
} // namespace v0
} // namespace vouch
