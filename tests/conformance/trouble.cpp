// SPDX-License-Identifier: MIT
// Stores and fixtures that the suite must report clearly: `trouble NAME [arguments of the suite]`, where NAME is
//   throws      open throws
//   stuck       open hangs
//   hangs       find hangs
//   deaf        wait hangs
//   crashes     next_due of a queue ends the process
//   slow        a claim looks at every entry
//   careless    no argument is checked, and the store's name is hostile to reports
// and reports: of runs with too little coverage for a verdict, `trouble gaps`, and of one with a slow server, `trouble
// slow_server`.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance.hpp>
#include <vouch/contract/store_adaptor.hpp>
#include <vouch/memory.hpp>

namespace {

std::string_view trouble;

void hang() {
    for (;;) {
        std::this_thread::sleep_for(std::chrono::hours{1});
    }
}

struct troubled_transaction : vouch::transaction_adaptor<vouch::memory::transaction> {
    using transaction_adaptor::transaction_adaptor;

    std::vector<vouch::receipt> enqueue(std::span<const vouch::draft> drafts, vouch::time_point now) {
        try {
            return inner().enqueue(drafts, now);
        } catch (const vouch::error& e) {
            if (trouble != "careless" || e.kind() != vouch::error_kind::invalid_argument) {
                throw;
            }
            return {};
        }
    }
    std::vector<vouch::entry> claim(const vouch::claim_request& request) {
        if (trouble == "slow") {
            const auto until = std::chrono::steady_clock::now() +
                               std::chrono::nanoseconds{200} * static_cast<long>(inner().counts(request.queue).total());
            while (std::chrono::steady_clock::now() < until) {
            }
        }
        return inner().claim(request);
    }
};

struct troubled_store : vouch::store_adaptor<vouch::memory::store> {
    using store_adaptor::store_adaptor;
    using transaction = troubled_transaction;

    transaction begin() { return transaction(inner().begin()); }
    [[nodiscard]] std::optional<vouch::entry> find(const vouch::id& wanted) const {
        if (trouble == "hangs") {
            hang();
        }
        return inner().find(wanted);
    }
    [[nodiscard]] std::optional<vouch::time_point> next_due(std::string_view queue) const {
        if (trouble == "crashes") {
            std::abort();
        }
        return inner().next_due(queue);
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) {
        if (trouble == "deaf") {
            hang();
        }
        return inner().wait(queue, seen, at_most, std::move(stop));
    }
};

struct fixture {
    troubled_store open(const vouch::conformance::location& where) {
        if (trouble == "throws") {
            throw vouch::error(vouch::error_kind::io, "trouble: there is no such disk");
        }
        if (trouble == "stuck") {
            hang();
        }
        return troubled_store(stores[where]);
    }

    std::map<vouch::conformance::location, vouch::memory::store> stores{};
};

/// The verdict on a run with this tally in which every clause passed.
std::string verdict_on(const vouch::conformance::tally& seen) {
    vouch::conformance::report r;
    r.gaps = vouch::conformance::detail::gaps_of(seen, {});
    std::string out(name_of(r.verdict()));
    return r.gaps.empty() ? out : out + ", " + r.gaps.front();
}

int print_gaps() {
    std::printf("29 of 100: %s\n", verdict_on({.histories = 100, .overlapping = 29}).c_str());
    std::printf("30 of 100: %s\n", verdict_on({.histories = 100, .overlapping = 30}).c_str());
    std::printf("no answers: %s\n", verdict_on({.commands = 1}).c_str());
    return 0;
}

/// The report of a run in which a server was slow to answer.
int print_slow_server() {
    const vouch::conformance::report r{.tally = {.guessed_turns = 3}};
    std::fputs(to_text(r).c_str(), stdout);
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    trouble = argc > 1 ? argv[1] : "";
    if (trouble == "gaps") {
        return print_gaps();
    }
    if (trouble == "slow_server") {
        return print_slow_server();
    }
    const std::string name = trouble == "careless" ? "</title><script>alert(1)</script>&\"'\x01\xff" : "trouble";
    return vouch::conformance::run<fixture>({name, "0"}, argc - 1, argv + 1);
}
