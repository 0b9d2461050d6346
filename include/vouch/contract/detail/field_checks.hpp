// SPDX-License-Identifier: MIT
// Checks of single fields. A check that fails throws `invalid_argument` and names the field, the limit and the size
// given, never the content.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/contract/detail/utf8.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// Names a field of an argument, for the message of a refusal. The text is made only when something is refused.
struct field {
    std::string_view of;   // "draft", "settle", "claim" ...
    std::string_view name; // "queue", "error" ...
    std::optional<std::size_t> index{};

    [[nodiscard]] std::string str() const {
        std::string out(of);
        if (index) {
            out += ' ';
            out += std::to_string(*index);
        }
        out += ": ";
        out += name;
        return out;
    }
};

[[noreturn]] inline void refuse(const field& f, std::string_view what) {
    throw error(error_kind::invalid_argument, f.str() + ' ' + std::string(what));
}

[[noreturn]] inline void refuse_size(const field& f, std::size_t given, std::size_t limit, std::string_view unit) {
    const auto sizes = "has " + std::to_string(given) + ' ' + std::string(unit);
    refuse(f, sizes + ", the limit is " + std::to_string(limit));
}

[[noreturn]] inline void refuse_control_character(const field& f, std::size_t at) {
    refuse(f, "has a control character at byte " + std::to_string(at));
}

/// Checks the character outside ASCII that begins at byte `at`. Returns its length.
inline std::size_t check_beyond_ascii(const field& f, std::string_view name, std::size_t at) {
    const auto c = utf8_character_of(name.substr(at));
    if (c.length == 0) {
        refuse(f, "is not valid UTF-8 at byte " + std::to_string(at));
    }
    if (c.is_control()) {
        refuse_control_character(f, at);
    }
    return c.length;
}

// The messages are made outside the checks: each draft passes a dozen checks, so these must stay small enough to
// inline.

inline void check_size(const field& f, std::size_t given, std::size_t limit, std::string_view unit) {
    if (given > limit) {
        refuse_size(f, given, limit, unit);
    }
}

inline void check_name(const field& f, std::string_view name, std::size_t limit) {
    check_size(f, name.size(), limit, "bytes");
    for (std::size_t i = 0; i < name.size();) {
        const auto c = static_cast<unsigned char>(name[i]);
        if (c < 0x20 || c == 0x7f) {
            refuse_control_character(f, i);
        }
        i += c < 0x80 ? 1 : check_beyond_ascii(f, name, i);
    }
}

inline void check_required_name(const field& f, std::string_view name, std::size_t limit) {
    if (name.empty()) {
        refuse(f, "is empty");
    }
    check_name(f, name, limit);
}

inline void check_empty(const field& f, bool empty, std::string_view because) {
    if (!empty) {
        refuse(f, because);
    }
}

inline void check_lease(const field& f, duration lease, const limits& limit) {
    if (lease < limit.lease_min || lease > limit.lease_max) {
        refuse(f, "is " + std::to_string(lease.count()) + " us, it must be from " +
                      std::to_string(limit.lease_min.count()) + " us to " + std::to_string(limit.lease_max.count()) +
                      " us");
    }
}

/// Checks that `now + lease` can be represented.
inline void check_room(const field& f, time_point now, duration lease) {
    if (now > time_point::max() - lease) {
        refuse(f, "is too late, the lease would end after the last time that can be stored");
    }
}

} // namespace detail
} // namespace v0
} // namespace vouch
