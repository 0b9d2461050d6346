// SPDX-License-Identifier: MIT
// Printing for tests and logs. Ids, states, verdicts, receipts and entries can be written to any output stream with
// `<<`, so Catch2, GoogleTest, doctest and RapidCheck print them in a failing test. The operators are templates over
// the stream: no header of vouch includes <iostream>.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {

/// An output stream of characters, such as `std::ostream`.
template <class Stream>
concept text_stream = requires(Stream& out, const char* text) {
    out.write(text, std::ptrdiff_t{});
};

namespace detail {

template <class Stream>
Stream& write_text(Stream& out, std::string_view text) {
    out.write(text.data(), static_cast<std::ptrdiff_t>(text.size()));
    return out;
}

} // namespace detail

/// Writes the name of a state, verdict, verb or any other enumeration of vouch that has a `name_of`.
template <text_stream Stream, class Enum>
    requires requires(Enum e) {
        { name_of(e) } -> std::same_as<std::string_view>;
    }
Stream& operator<<(Stream& out, Enum e) { return detail::write_text(out, name_of(e)); }

} // namespace v0
} // namespace vouch
