// SPDX-License-Identifier: MIT
// A fixture for saga tests: a store, a clock, a runner per queue, and a log of what the actions do.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "support.hpp"

namespace saga_support {

using namespace support;
using lines = std::vector<std::string>;

/// Retries at once, up to this many attempts.
[[nodiscard]] inline vouch::retry_policy times(std::uint32_t attempts) {
    return {.backoff = vouch::fixed{}, .attempts_max = attempts};
}

class stage {
  public:
    using store_type = vouch::memory::store;

    explicit stage(vouch::bindings bound = {})
        : outbox(store, {.clock = clock, .ids = vouch::counting_ids(), .bindings = std::move(bound)}) {}

    /// Serves this saga, in all of these versions, in the queue `sagas`.
    void play(std::vector<vouch::saga_definition> versions) { router("sagas").on(std::move(versions)); }
    void play(const vouch::saga_definition& definition) { play(std::vector{definition}); }

    template <class Handler>
    void on(const std::string& queue, const std::string& topic, Handler&& handler,
            vouch::retry_policy retry = times(3)) {
        router(queue).on(topic, std::forward<Handler>(handler), std::move(retry));
    }

    vouch::id begin(const vouch::saga_definition& d, const std::string& payload = "p") {
        return outbox.start(d, "sagas", payload);
    }
    vouch::id emit(const vouch::emission& e) { return outbox.emit(e).front().id; }

    [[nodiscard]] vouch::router<store_type>& router(const std::string& queue) {
        auto& at = routers_[queue];
        if (!at) {
            at = std::make_unique<vouch::router<store_type>>(outbox);
        }
        return *at;
    }
    /// A new runner for each pass, so that nothing is kept in between.
    [[nodiscard]] vouch::runner<store_type> runner(const std::string& queue = "sagas") {
        vouch::runner<store_type> made(outbox, router(queue), {.queue = queue, .lease = 5min});
        made.observe(recorder);
        return made;
    }

    vouch::report run(const std::string& queue = "sagas") { return runner(queue).run_until_idle(); }

    /// Every queue with a router, until nothing is due in any.
    void run_all() {
        for (bool busy = true; busy;) {
            busy = false;
            for (const auto& [queue, routes] : routers_) {
                busy = run(queue).claimed > 0 || busy;
            }
        }
    }
    /// The same, moving the clock whenever nothing is due, until nothing is left to wait for.
    void run_out() {
        for (;;) {
            run_all();
            std::optional<vouch::time_point> next;
            for (const auto& [queue, routes] : routers_) {
                const auto due = store.next_due(queue);
                next = due && (!next || *due < *next) ? due : next;
            }
            if (!next) {
                return;
            }
            clock.set(std::max(clock(), *next));
        }
    }

    /// Claims what is due and crashes: nothing is handled.
    void crash(const std::string& queue = "sagas") { std::ignore = runner(queue).claim(); }
    void pass(vouch::duration by) { clock.pass(by); }

    void note(std::string line) { log.push_back(std::move(line)); }
    /// An action that logs its call and returns `result`.
    [[nodiscard]] auto does(const std::string& what, const std::string& result = {}) {
        return [this, what, result](vouch::step_call& call) {
            note(call.is_compensation() ? what + " <" + std::string(call.result()) + ">" : what);
            return result;
        };
    }
    /// An action that logs its call and rejects.
    [[nodiscard]] auto rejects(const std::string& what, const std::string& code) {
        return [this, what, code](vouch::step_call&) -> std::string {
            note(what);
            throw vouch::reject(code);
        };
    }
    /// An action that logs its call and fails.
    [[nodiscard]] auto fails(const std::string& what, const std::string& code) {
        return [this, what, code](vouch::step_call&) -> std::string {
            note(what);
            throw vouch::failure(code);
        };
    }

    [[nodiscard]] vouch::entry entry(const vouch::id& id) const {
        const auto found = store.find(id);
        REQUIRE(found);
        return *found;
    }
    [[nodiscard]] vouch::saga_status status(const vouch::id& id) const {
        const auto found = vouch::inspect(store, id);
        REQUIRE(found);
        return *found;
    }
    [[nodiscard]] std::string line(const vouch::id& id) const { return to_string(status(id), start); }
    [[nodiscard]] std::vector<vouch::entry> commands(const vouch::id& saga) const {
        return store.list(vouch::query::children(saga));
    }
    /// The tags of all events, in order.
    [[nodiscard]] lines tags() const {
        lines out;
        for (const auto& e : recorder.events()) {
            if (!e.tag.empty()) {
                out.push_back(e.tag);
            }
        }
        return out;
    }

    vouch::manual_clock clock{};
    vouch::time_point start = clock();
    store_type store{};
    vouch::outbox<store_type> outbox;
    vouch::testing::recorder recorder{};
    lines log{};

  private:
    std::map<std::string, std::unique_ptr<vouch::router<store_type>>> routers_{};
};

[[nodiscard]] inline vouch::saga_builder<std::string> define(vouch::saga_options options = {}) {
    return vouch::define_saga<std::string>("order", std::move(options));
}

} // namespace saga_support
