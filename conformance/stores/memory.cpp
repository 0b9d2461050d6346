// SPDX-License-Identifier: MIT
// The memory store under the suite. Its locations are names: what is stored at one is kept as long as the program runs.
// The store calls a seam between its steps, through which the suite puts threads in order, lets processes die, and lets
// the n-th step fail.
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

struct machinery {
    callback call{};
    std::atomic<std::size_t> left = 0; ///< steps until one fails; 0: none does
    std::atomic<bool> has_failed = false;
};

struct shared_seam {
    std::shared_ptr<machinery> of{};
    void operator()(std::string_view where) const {
        if (of && of->left > 0 && --of->left == 0) {
            of->has_failed = true;
            throw vouch::error(vouch::error_kind::full, "memory: no room, as the suite has asked for");
        }
        if (of && of->call) {
            of->call(where);
        }
    }
};

struct fixture {
    using store = vouch::memory::basic_store<shared_seam>;

    store open(const vouch::conformance::location& p) { return stores.try_emplace(p, shared_seam{of}).first->second; }
    void forget(const vouch::conformance::location& p) { stores.erase(p); }
    void seam(callback f) { of->call = std::move(f); }
    bool fail_at(std::size_t n) {
        of->left = n;
        return of->has_failed.exchange(false);
    }

    std::shared_ptr<machinery> of = std::make_shared<machinery>();
    std::map<vouch::conformance::location, store> stores{};
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"memory", "0.1.0"}, argc, argv); }
