// SPDX-License-Identifier: MIT
// The mutex of a plain store. In one mutant it does nothing.
#pragma once

#include <mutex>

namespace mutants {

class state_mutex {
  public:
    explicit state_mutex(bool locks) : locks_(locks) {}

    void lock() {
        if (locks_) {
            mutex_.lock();
        }
    }
    void unlock() {
        if (locks_) {
            mutex_.unlock();
        }
    }

  private:
    const bool locks_;
    std::mutex mutex_{};
};

} // namespace mutants
