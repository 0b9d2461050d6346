// SPDX-License-Identifier: MIT
// Where a store under test keeps its work. The suite opens the same location twice for a second handle, opens it again
// after destroying all handles for a reopen, and takes a new location for an empty store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/detail/mix.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Names one store. Ordered, so that a fixture can use it as a map's key.
class location {
  public:
    explicit location(std::filesystem::path directory) : directory_(std::move(directory)) {}

    /// A folder that belongs to this location. It exists and is empty when the location is opened for the first time. A
    /// store that needs no files may use `name` instead.
    [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }

    /// A short name that no other location has, of this run or another: a lower-case letter, then lower-case letters and
    /// digits, 17 bytes in all. A store on a server can use it as the name of a schema or as a prefix.
    [[nodiscard]] std::string name() const {
        constexpr std::string_view digits = "0123456789abcdef";
        std::uint64_t sum = 0;
        for (const char c : directory_.string()) {
            sum = vouch::detail::mix(sum ^ static_cast<unsigned char>(c));
        }
        std::string out = "v";
        for (unsigned shift = 64; shift > 0; shift -= 4) {
            out.push_back(digits[(sum >> (shift - 4)) & 15U]);
        }
        return out;
    }
    [[nodiscard]] friend bool operator==(const location&, const location&) = default;
    [[nodiscard]] friend bool operator<(const location& a, const location& b) { return a.directory_ < b.directory_; }

  private:
    std::filesystem::path directory_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
