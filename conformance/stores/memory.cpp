// SPDX-License-Identifier: MIT
// The memory store under the suite. Its places are names: what is stored at one is kept as long as the program runs.
// The store calls a seam between its steps, through which the suite puts threads in order and lets processes die.
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include <vouch/conformance.hpp>
#include <vouch/memory.hpp>

namespace {

using callback = std::function<void(std::string_view)>;

struct shared_seam {
    std::shared_ptr<callback> call{};
    void operator()(std::string_view where) const {
        if (call && *call) {
            (*call)(where);
        }
    }
};

struct fixture {
    using store = vouch::memory::basic_store<shared_seam>;

    store open(const vouch::conformance::place& p) { return stores.try_emplace(p, shared_seam{call}).first->second; }
    void forget(const vouch::conformance::place& p) { stores.erase(p); }
    void seam(callback f) { *call = std::move(f); }

    std::shared_ptr<callback> call = std::make_shared<callback>();
    std::map<vouch::conformance::place, store> stores{};
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"memory", "0.1.0"}, argc, argv); }
