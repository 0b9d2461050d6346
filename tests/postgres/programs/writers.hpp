// SPDX-License-Identifier: MIT
// Threads that enqueue, claim, settle and purge until they are stopped, and note in a ledger what the store says. Two of
// them share a store, and each pair has its own.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "postgres/programs/findings.hpp"
#include "postgres/programs/ledger.hpp"

namespace fault_program {

class writers {
  public:
    static constexpr std::uint64_t pairs = 2;
    static constexpr std::chrono::milliseconds lease{300};

    /// Each pair has a conninfo of its own.
    writers(const std::array<std::string, pairs>& conninfos, const vouch::postgres::options& how, ledger& book,
            error_counts& errors)
        : book_(book), errors_(errors) {
        stores_.reserve(pairs); // so that the threads' references stay good
        for (std::uint64_t i = 0; i < pairs; ++i) {
            stores_.emplace_back(conninfos[i], how);
            threads_.emplace_back([this, i](const std::stop_token& stop) { produce(stores_[i], i, stop); });
            threads_.emplace_back([this, i](const std::stop_token& stop) { consume(stores_[i], i, stop); });
        }
    }

    /// Stops and joins the threads.
    void stop() {
        for (auto& t : threads_) {
            t.request_stop();
        }
        threads_.clear();
    }
    /// How many transactions were said to be stored.
    [[nodiscard]] std::size_t stored() const noexcept { return stored_; }

  private:
    said run(const std::function<void()>& transaction) {
        const auto what = errors_.run(transaction);
        stored_ += what == said::stored ? 1 : 0;
        if (what != said::stored) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
        return what;
    }

    void produce(vouch::postgres::store& store, std::uint64_t number, const std::stop_token& stop) {
        for (std::uint64_t i = 1; !stop.stop_requested(); ++i) {
            vouch::draft d{.id = {.high = number + 1, .low = i}, .queue = "work", .topic = "t"};
            d.payload = std::string(100, 'p');
            if (i % 3 == 0) {
                d.lane = "lane" + std::to_string(i % 5);
            }
            if (i % 4 == 0) {
                d.group = "group" + std::to_string(i / 16);
            }
            book_.note_enqueue(d.id, run([&] {
                                   if (i % 2 == 0) { // which tries again if it is in doubt
                                       vouch::enqueue(store, std::array{d}, vouch::system_now());
                                       return;
                                   }
                                   auto tx = store.begin();
                                   std::ignore = tx.enqueue(std::array{d}, vouch::system_now());
                                   tx.commit();
                               }));
            if (i % 8 == 0) {
                keep_and_purge(store, {.high = number + 101, .low = i});
            }
        }
    }

    /// Stores an entry that has ended, and removes some of those.
    void keep_and_purge(vouch::postgres::store& store, const vouch::id& which) {
        const vouch::draft d{.id = which, .queue = "ended", .topic = "t", .result = "done"};
        const auto kept = run([&] {
            auto tx = store.begin();
            std::ignore = tx.enqueue(std::array{d}, vouch::system_now());
            tx.commit();
        });
        book_.note_purgeable(1, kept);
        std::size_t removed = 0;
        const auto purged = run([&] {
            auto tx = store.begin();
            removed = tx.purge({.queue = "ended", .before = vouch::system_now(), .limit = 2});
            tx.commit();
        });
        book_.note_purgeable(-static_cast<long>(removed), purged);
    }

    void consume(vouch::postgres::store& store, std::uint64_t number, const std::stop_token& stop) {
        bool is_by_hand = false;
        while (!stop.stop_requested()) {
            std::vector<vouch::entry> claimed;
            const vouch::claim_request request{.queue = "work",
                                               .limit = 3,
                                               .now = vouch::system_now(),
                                               .lease = lease,
                                               .worker = std::to_string(number)};
            is_by_hand = !is_by_hand;
            const auto what = run([&] {
                if (!is_by_hand) {
                    claimed = vouch::claim(store, request);
                    return;
                }
                auto tx = store.begin();
                claimed = tx.claim(request);
                tx.commit();
            });
            for (const auto& e : claimed) {
                book_.note_claim(e, what);
            }
            if (what == said::stored) {
                settle(store, claimed);
            } else if (what == said::in_doubt && claimed.empty()) {
                book_.note_unheard_claim(request.limit);
            }
        }
    }

    void settle(vouch::postgres::store& store, const std::vector<vouch::entry>& claimed) {
        std::vector<vouch::settle> settles;
        for (const auto& e : claimed) {
            settles.push_back({ticket_of(e), vouch::succeed{.result = std::to_string(++results_)}});
        }
        std::vector<vouch::settlement> answers;
        const auto what = run([&] {
            auto tx = store.begin();
            answers = tx.settle(settles, vouch::system_now());
            tx.commit();
        });
        for (std::size_t i = 0; i < answers.size(); ++i) {
            if (answers[i].verdict == vouch::verdict::applied) {
                book_.note_settle(settles[i].ticket, std::get<vouch::succeed>(settles[i].outcome).result, what);
            }
        }
    }

    ledger& book_;
    error_counts& errors_;
    std::atomic<std::size_t> stored_ = 0;
    std::atomic<std::uint64_t> results_ = 0;
    std::vector<vouch::postgres::store> stores_{};
    std::vector<std::jthread> threads_{};
};

} // namespace fault_program
