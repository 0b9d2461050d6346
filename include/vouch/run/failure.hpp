// SPDX-License-Identifier: MIT
// The exceptions with which a handler reports failure, and what is stored of any exception: a code that the handler
// chose, or the name of the exception's class. Messages are never stored, because they may contain personal data.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/detail/utf8.hpp>
#include <vouch/contract/limits.hpp>

#if defined(__GXX_RTTI) || defined(__cpp_rtti) || defined(_CPPRTTI)
#include <typeinfo>
#if defined(__has_include)
#if __has_include(<cxxabi.h>)
#include <cstdlib>

#include <cxxabi.h>
#endif
#endif
#endif

namespace vouch {
inline namespace v0 {

/// Throw this from a handler to fail the attempt with a code. The entry is retried by policy.
class failure : public std::exception {
  public:
    explicit failure(std::string code) : code_(std::move(code)) {}
    [[nodiscard]] const std::string& code() const noexcept { return code_; }
    [[nodiscard]] const char* what() const noexcept override { return code_.c_str(); }

  private:
    std::string code_;
};

/// Throw this from a handler to fail for good: the entry is dead and not retried. A saga whose command is rejected on its
/// first attempt knows that nothing was done.
class reject : public failure {
  public:
    explicit reject(std::string code = "rejected") : failure(std::move(code)) {}
};

/// Makes a text fit to be stored as an error code: within the limit and not cut inside a character. Control characters
/// and bytes that are not valid UTF-8 become `?`.
[[nodiscard]] inline std::string error_code(std::string_view text) {
    std::string code;
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const auto beyond = detail::utf8_character_of(text.substr(i));
        const bool is_kept = beyond.length > 0 ? !beyond.is_control() : byte >= 0x20 && byte < 0x7f;
        const auto length = beyond.length > 0 ? beyond.length : 1;
        const auto part = is_kept ? text.substr(i, length) : std::string_view("?");
        if (code.size() + part.size() > limits{}.error_max) {
            break;
        }
        code += part;
        i += length;
    }
    return code;
}

/// The name of an exception's class, demangled if the platform can do that.
[[nodiscard]] inline std::string class_of([[maybe_unused]] const std::exception& e) {
#if defined(__GXX_RTTI) || defined(__cpp_rtti) || defined(_CPPRTTI)
    const char* const raw = typeid(e).name();
#if defined(__has_include)
#if __has_include(<cxxabi.h>)
    int status = 0;
    const struct freed { // std::unique_ptr with a deleter of its own takes longer to compile
        char* text;
        ~freed() { std::free(text); }
    } plain{abi::__cxa_demangle(raw, nullptr, nullptr, &status)};
    if (status == 0 && plain.text != nullptr) {
        return error_code(plain.text);
    }
#endif
#endif
    return error_code(raw);
#else
    return "exception";
#endif
}

} // namespace v0
} // namespace vouch
