// SPDX-License-Identifier: MIT
// What is kept of an exception: its code, and whether another attempt makes sense. Its text is only for observers that
// asked for it; it is never stored, because messages carry other people's data.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>
#include <vouch/run/failure.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

struct caught_exception {
    std::string code;
    bool is_permanent = false;
    std::string text{};

    static constexpr std::size_t text_max = 1000;

    [[nodiscard]] static std::string text_of(const std::exception& e) {
        const char* const text = e.what();
        return text == nullptr ? std::string{} : std::string(std::string_view(text).substr(0, text_max));
    }

    /// Call this inside a catch clause.
    [[nodiscard]] static caught_exception current() {
        try {
            throw;
        } catch (const reject& e) {
            return {error_code(e.code()), true};
        } catch (const failure& e) {
            return {error_code(e.code())};
        } catch (const error& e) {
            return {std::string(name_of(e.kind())), false, text_of(e)};
        } catch (const std::exception& e) {
            return {class_of(e), false, text_of(e)};
        } catch (...) {
            return {"unknown_exception"};
        }
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch
