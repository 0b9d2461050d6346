// SPDX-License-Identifier: MIT
// The payload of a compensating command, unless the definition makes its own: the saga's payload and the reply to the
// forward command. A participant receives it as a value:
//
//   router.on<vouch::compensation>("refund", [](const vouch::compensation& c, vouch::delivery& d) {
//       refund(c.context_as<order>(), c.reply);
//   });
//
// Its bytes: the length of the context in decimal, `+` if there is a reply or `-` if there is none, the context, and the
// reply.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <vouch/outbox/codec.hpp>
#include <vouch/run/failure.hpp>

namespace vouch {
inline namespace v0 {

struct compensation {
    std::string context{};              ///< the saga's payload
    std::optional<std::string> reply{}; ///< nothing: it is not known whether the forward command had an effect

    /// The context, decoded. Throws `reject("undecodable")` if the codec throws anything but a `failure`.
    template <decodable T>
    [[nodiscard]] T context_as() const {
        try {
            return codec<T>::decode(context);
        } catch (const failure&) {
            throw;
        } catch (...) {
            throw reject("undecodable");
        }
    }

    [[nodiscard]] friend bool operator==(const compensation&, const compensation&) = default;
};

template <>
struct codec<compensation> {
    [[nodiscard]] static std::string encode(const compensation& c) {
        return std::to_string(c.context.size()) + (c.reply ? '+' : '-') + c.context + c.reply.value_or(std::string{});
    }
    [[nodiscard]] static compensation decode(std::string_view bytes) {
        std::size_t size = 0;
        const auto* const end = bytes.data() + bytes.size();
        const auto [mark, wrong] = std::from_chars(bytes.data(), end, size);
        const auto rest = wrong == std::errc{} ? std::string_view(mark, static_cast<std::size_t>(end - mark)) : "";
        const bool has_reply = rest.starts_with('+');
        const bool is_whole = has_reply ? rest.size() > size : rest.starts_with('-') && rest.size() == size + 1;
        if (!is_whole) {
            throw reject("undecodable");
        }
        return {.context = std::string(rest.substr(1, size)),
                .reply = has_reply ? std::optional(std::string(rest.substr(1 + size))) : std::nullopt};
    }
};

} // namespace v0
} // namespace vouch
