// SPDX-License-Identifier: MIT
// Makes the locations of one run, below a folder that is removed at the end. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <vouch/conformance/location.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class locations {
  public:
    explicit locations(std::filesystem::path root) : root_(std::move(root)) {
        std::filesystem::create_directories(root_);
    }
    locations(const locations&) = delete;
    locations& operator=(const locations&) = delete;
    ~locations() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }

    [[nodiscard]] location fresh() {
        location fresh(root_ / std::to_string(++made_));
        std::filesystem::create_directory(fresh.directory());
        return fresh;
    }

  private:
    std::filesystem::path root_;
    std::atomic<unsigned long long> made_ = 0;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
