// SPDX-License-Identifier: MIT
// The suite for the memory store. A location is a name here: its work is kept until the suite forgets the location. The
// store calls a seam between its steps, which the suite uses to schedule threads, to end processes, and to fail the n-th
// step.
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include <vouch/conformance.hpp>
#include <vouch/memory.hpp>

namespace {

using callback = std::function<void(std::string_view)>;

struct seam_state {
    callback call{};
    std::atomic<std::size_t> left = 0; ///< steps until one fails; 0: none fails
    std::atomic<bool> has_failed = false;
};

struct shared_seam {
    std::shared_ptr<seam_state> state{};
    void operator()(std::string_view where) const {
        if (state && state->left > 0 && --state->left == 0) {
            state->has_failed = true;
            throw vouch::error(vouch::error_kind::full, "memory: full, injected by the suite");
        }
        if (state && state->call) {
            state->call(where);
        }
    }
};

struct fixture {
    using store = vouch::memory::basic_store<shared_seam>;

    store open(const vouch::conformance::location& p) {
        return stores.try_emplace(p, shared_seam{state}).first->second;
    }
    void forget(const vouch::conformance::location& p) { stores.erase(p); }
    void seam(callback f) { state->call = std::move(f); }
    bool fail_at(std::size_t n) {
        state->left = n;
        return state->has_failed.exchange(false);
    }

    std::shared_ptr<seam_state> state = std::make_shared<seam_state>();
    std::map<vouch::conformance::location, store> stores{};
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"memory", "0.1.0"}, argc, argv); }
