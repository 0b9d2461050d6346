// SPDX-License-Identifier: MIT
// Where a store under test keeps its work. The suite opens the same location twice for a second handle, opens it again
// after destroying all handles for a reopen, and takes a new location for an empty store.
#pragma once

#include <filesystem>
#include <utility>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Names one store. Ordered, so that a fixture can use it as a map's key.
class location {
  public:
    explicit location(std::filesystem::path directory) : directory_(std::move(directory)) {}

    /// A folder that belongs to this location. It exists and is empty when the location is opened for the first time. A
    /// store that needs no files may use the path as a name.
    [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
    [[nodiscard]] friend bool operator==(const location&, const location&) = default;
    [[nodiscard]] friend bool operator<(const location& a, const location& b) { return a.directory_ < b.directory_; }

  private:
    std::filesystem::path directory_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
