// SPDX-License-Identifier: MIT
// Writes the Prometheus text format, version 0.0.4: for each metric its help and type, then a line for each combination
// of labels.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/time.hpp>
#include <vouch/observe/detail/histogram.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// Collects the text. Not thread-safe.
class exposition {
  public:
    struct label {
        std::string_view name{};
        std::string_view value{};
    };
    using labels = std::vector<label>;

    /// Begins a metric.
    void head(std::string_view name, std::string_view type, std::string_view help) {
        name_ = name;
        out_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
        out_.append(type).append("\n");
    }

    /// Adds a line to the metric that was begun last.
    template <class Number>
    void line(const labels& of, Number value) {
        write("", of, std::to_string(value));
    }
    void seconds(const labels& of, duration value) { write("", of, seconds_text(value)); }

    void lines(labels of, const histogram& h) {
        of.push_back({.name = "le"});
        for (std::size_t i = 0; i < histogram::bounds.size(); ++i) {
            of.back().value = histogram::bounds[i].name;
            write("_bucket", of, std::to_string(h.up_to(i)));
        }
        of.back().value = "+Inf";
        write("_bucket", of, std::to_string(h.count()));
        of.pop_back();
        write("_sum", of, seconds_text(h.sum()));
        write("_count", of, std::to_string(h.count()));
    }

    [[nodiscard]] std::string text() && { return std::move(out_); }

  private:
    void write(std::string_view suffix, const labels& of, std::string_view value) {
        out_.append(name_).append(suffix).append("{");
        for (const auto& l : of) {
            out_.append(out_.back() == '{' ? "" : ",").append(l.name).append("=\"");
            for (const char c : l.value) {
                if (c == '\n') {
                    out_ += "\\n";
                } else {
                    out_.append(c == '"' || c == '\\' ? "\\" : "").push_back(c);
                }
            }
            out_ += '"';
        }
        out_.append("} ").append(value).append("\n");
    }

    std::string_view name_{};
    std::string out_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
