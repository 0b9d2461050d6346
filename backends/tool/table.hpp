// SPDX-License-Identifier: MIT
// A table with aligned columns and a header, or the same rows as JSON. Colours are for a terminal only, and not if
// NO_COLOR is set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "arguments.hpp"
#include "json.hpp"
#include "output.hpp"

namespace tool {

[[nodiscard]] inline bool has_colours() {
    static const bool has = [] {
        const char* const no = std::getenv("NO_COLOR");
        const char* const kind = std::getenv("TERM");
        return isatty(STDOUT_FILENO) != 0 && (no == nullptr || *no == '\0') &&
               (kind == nullptr || std::string_view(kind) != "dumb");
    }();
    return has;
}

/// The text in a colour, given as the number of ANSI's sequence.
[[nodiscard]] inline std::string coloured(const std::string& text, std::string_view colour) {
    return colour.empty() || !has_colours() ? text : "\x1b[" + std::string(colour) + "m" + text + "\x1b[0m";
}

[[nodiscard]] inline std::string_view colour_of(std::string_view state) {
    constexpr std::pair<std::string_view, std::string_view> colours[]{
        {"dead", "31"}, {"retrying", "33"}, {"claimed", "36"}, {"succeeded", "32"}, {"compensated", "35"}};
    for (const auto& [name, colour] : colours) {
        if (name == state) {
            return colour;
        }
    }
    return {};
}

/// How many characters a visible text has.
[[nodiscard]] inline std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

/// For a cell: escaped, and not longer than a line can take.
[[nodiscard]] inline std::string cell_text(std::string_view text) {
    constexpr std::size_t most = 60;
    auto out = plain(text.substr(0, 4 * most));
    if (width_of(out) <= most) {
        return out;
    }
    std::size_t end = 0;
    for (std::size_t characters = 0; end < out.size(); ++end) {
        if ((static_cast<unsigned char>(out[end]) & 0xc0U) != 0x80 && ++characters > most - 3) {
            break;
        }
    }
    return out.substr(0, end) + "...";
}

class table {
  public:
    struct cell {
        cell(std::string shown,
             std::string_view in = {}) // NOLINT(google-explicit-constructor): a row is a list of texts
            : text(std::move(shown)), colour(in) {}
        cell(const char* shown) : text(shown) {} // NOLINT(google-explicit-constructor)
        std::string text;
        std::string_view colour{};
    };

    table(const arguments& with, std::vector<std::string> titles) : with_(with), titles_(std::move(titles)) {}

    /// The cells are printed as they are. `as_json` is the same row for scripts.
    void add(std::vector<cell> row, json as_json) {
        ++size_;
        if (with_.ndjson) {
            print(text_of(as_json) + "\n");
        } else if (with_.json) {
            rows_as_json_.push_back(std::move(as_json));
        } else {
            rows_.push_back(std::move(row));
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// Prints the rows; as text, `if_empty` instead of nothing.
    void print_all(const std::string& if_empty) const {
        if (with_.ndjson) {
            return;
        }
        if (with_.json) {
            print(text_of(rows_as_json_) + "\n");
            return;
        }
        print(rows_.empty() ? if_empty : text());
    }

    [[nodiscard]] std::string text() const {
        std::vector<std::size_t> widths;
        for (std::size_t i = 0; i < titles_.size(); ++i) {
            widths.push_back(width_of(titles_[i]));
            for (const auto& row : rows_) {
                widths[i] = std::max(widths[i], width_of(row[i].text));
            }
        }
        std::vector<cell> header;
        for (const auto& title : titles_) {
            header.emplace_back(title, "1");
        }
        auto out = line(header, widths);
        for (const auto& row : rows_) {
            out += line(row, widths);
        }
        return out;
    }

  private:
    [[nodiscard]] static std::string line(const std::vector<cell>& cells, const std::vector<std::size_t>& widths) {
        std::string out;
        std::size_t missing = 0; // spaces up to the next column, so that no line ends with spaces
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (!cells[i].text.empty()) {
                out += std::string(missing, ' ') + coloured(cells[i].text, cells[i].colour);
                missing = 0;
            }
            missing += widths[i] - width_of(cells[i].text) + 2;
        }
        return out + "\n";
    }

    const arguments& with_;
    std::vector<std::string> titles_;
    std::vector<std::vector<cell>> rows_{};
    json rows_as_json_ = json::array();
    std::size_t size_ = 0;
};

} // namespace tool
