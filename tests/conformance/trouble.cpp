// SPDX-License-Identifier: MIT
// Fixtures nothing can be said about, to see what is said: `trouble throws|hangs [arguments of the suite]`.
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>

#include <vouch/conformance.hpp>
#include <vouch/memory.hpp>

namespace {

bool throws = false;

struct hanging_store : vouch::memory::store {
    hanging_store() {}
    [[nodiscard]] std::optional<vouch::entry> find(const vouch::id&) const {
        for (;;) {
            std::this_thread::sleep_for(std::chrono::hours{1});
        }
    }
};

struct fixture {
    hanging_store open(const vouch::conformance::place&) {
        if (throws) {
            throw vouch::error(vouch::error_kind::io, "trouble: there is no such disk");
        }
        return {};
    }
};

} // namespace

int main(int argc, char** argv) {
    throws = argc > 1 && argv[1] == std::string_view("throws");
    return vouch::conformance::run<fixture>({"trouble", "0"}, argc - 1, argv + 1);
}
