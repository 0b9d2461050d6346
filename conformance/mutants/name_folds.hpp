// SPDX-License-Identifier: MIT
// How a mutant confuses names that differ: each fold makes some different names equal. The conforming fold is `none`.
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mutants {

enum class fold : std::uint8_t {
    none,
    case_of_letters,
    trailing_spaces,
    leading_spaces,
    numbers,        ///< "01" and "1.0" become "1"
    last_byte,      ///< of names with 255 bytes
    normal_form,    ///< a letter and its accent become one character
    beyond_the_bmp, ///< characters of four bytes become question marks
    quotes,         ///< every quote is doubled
    backslashes,    ///< every backslash is dropped
    hash_of_twelve_bits,
};

struct named_fold {
    mutants::fold fold;
    std::string_view name;
};

namespace detail {

[[nodiscard]] inline std::string replaced(std::string text, std::string_view what, std::string_view with) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
    return text;
}

[[nodiscard]] inline std::string lowered(std::string text) {
    for (auto& c : text) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return text;
}

/// Drops leading zeros and ".0". Text that is not a number stays as it is.
[[nodiscard]] inline std::string number_text(const std::string& text) {
    if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos) {
        return text;
    }
    auto out = text.substr(std::min(text.find_first_not_of('0'), text.size() - 1));
    return out.ends_with(".0") ? out.substr(0, out.size() - 2) : out;
}

[[nodiscard]] inline std::string within_the_bmp(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        out += c >= 0xf0U ? '?' : text[i];
        i += c >= 0xf0U ? 3U : 0U;
    }
    return out;
}

[[nodiscard]] inline std::string short_hash(std::string_view text) {
    std::uint32_t hash = 2'166'136'261U;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 16'777'619U;
    }
    return std::to_string((hash ^ (hash >> 12U) ^ (hash >> 24U)) & 0xfffU);
}

} // namespace detail

[[nodiscard]] inline std::string folded(const std::string& name, fold how) {
    switch (how) {
    case fold::none: break;
    case fold::case_of_letters: return detail::lowered(name);
    case fold::trailing_spaces: return name.substr(0, name.find_last_not_of(' ') + 1);
    case fold::leading_spaces: return name.substr(std::min(name.find_first_not_of(' '), name.size()));
    case fold::numbers: return detail::number_text(name);
    case fold::last_byte: return name.substr(0, 254);
    case fold::normal_form: return detail::replaced(name, "e\xcc\x81", "\xc3\xa9");
    case fold::beyond_the_bmp: return detail::within_the_bmp(name);
    case fold::quotes: return detail::replaced(name, "'", "''");
    case fold::backslashes: return detail::replaced(name, "\\", "");
    case fold::hash_of_twelve_bits: return detail::short_hash(name);
    }
    return name;
}

/// Whether `name` matches `pattern`, in which `%` stands for any text and `_` for any byte.
[[nodiscard]] inline bool is_like(std::string_view name, std::string_view pattern) {
    if (pattern.empty()) {
        return name.empty();
    }
    if (pattern.front() == '%') {
        return is_like(name, pattern.substr(1)) || (!name.empty() && is_like(name.substr(1), pattern));
    }
    return !name.empty() && (pattern.front() == '_' || pattern.front() == name.front()) &&
           is_like(name.substr(1), pattern.substr(1));
}

} // namespace mutants
