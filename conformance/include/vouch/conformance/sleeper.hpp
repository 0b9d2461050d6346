// SPDX-License-Identifier: MIT
// A thread of this process that can be asked whether it sleeps. Linux tells; elsewhere every thread is taken for
// asleep, so that there a busy machine may look like a waiting thread.
#pragma once

#if defined(__linux__)
#include <array>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace vouch {
inline namespace v0 {
namespace conformance {

#if defined(__linux__)

class sleeper {
  public:
    sleeper() = default; ///< no thread
    sleeper(sleeper&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    sleeper& operator=(sleeper&& other) noexcept {
        std::swap(file_, other.file_);
        return *this;
    }
    ~sleeper() {
        if (file_ >= 0) {
            close(file_);
        }
    }

    [[nodiscard]] static sleeper current() {
        sleeper out;
        const auto path = "/proc/self/task/" + std::to_string(syscall(SYS_gettid)) + "/stat";
        out.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        return out;
    }

    /// Whether it waits for another thread, or for time to pass; not if it merely waits for a processor or a disk.
    [[nodiscard]] bool is_asleep() const {
        std::array<char, 256> text{}; // "42 (name) S ...", and a name is short
        if (file_ < 0 || pread(file_, text.data(), text.size() - 1, 0) <= 0) {
            return true; // it is gone, or nobody tells
        }
        const std::string said(text.data());
        const auto name_end = said.rfind(')');
        return name_end != std::string::npos && name_end + 2 < said.size() && said[name_end + 2] == 'S';
    }

  private:
    int file_ = -1;
};

#else

class sleeper {
  public:
    [[nodiscard]] static sleeper current() { return {}; }
    [[nodiscard]] bool is_asleep() const { return true; }
};

#endif

} // namespace conformance
} // namespace v0
} // namespace vouch
