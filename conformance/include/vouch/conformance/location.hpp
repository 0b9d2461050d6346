// SPDX-License-Identifier: MIT
// Where a store under test lives. The same place opened twice is a second handle; everything destroyed and opened again
// is a reopen; a new place is a fresh empty store.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

class place {
  public:
    explicit place(std::filesystem::path directory) : directory_(std::move(directory)) {}

    /// An empty folder of its own when the place is first opened. A store that needs no files uses it as a name.
    [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
    [[nodiscard]] friend bool operator==(const place&, const place&) = default;
    [[nodiscard]] friend bool operator<(const place& a, const place& b) { return a.directory_ < b.directory_; }

  private:
    std::filesystem::path directory_;
};

/// Makes places below one folder, which is removed in the end.
class places {
  public:
    explicit places(std::filesystem::path root) : root_(std::move(root)) { std::filesystem::create_directories(root_); }
    places(const places&) = delete;
    places& operator=(const places&) = delete;
    ~places() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }

    [[nodiscard]] place fresh() {
        place p(root_ / std::to_string(++made_));
        std::filesystem::create_directory(p.directory());
        return p;
    }

  private:
    std::filesystem::path root_;
    std::atomic<unsigned long long> made_ = 0;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
