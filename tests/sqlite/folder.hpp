// SPDX-License-Identifier: MIT
// A folder of its own for the files of one test, gone when the test is.
#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace sqlite_test {

class folder {
  public:
    folder() {
        std::string name = (std::filesystem::temp_directory_path() / "vouch-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no temporary folder");
        }
        path_ = name;
    }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    ~folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
    /// A path no earlier call gave.
    [[nodiscard]] std::string fresh_path() const { return file("store-" + std::to_string(++made_) + ".db"); }

  private:
    std::filesystem::path path_{};
    mutable std::atomic<int> made_ = 0;
};

} // namespace sqlite_test
