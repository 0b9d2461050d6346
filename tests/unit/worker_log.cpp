// SPDX-License-Identifier: MIT
// The worker's own log: warnings and errors to stderr, unless an observer writes a log or an option turns it off.
#include <array>
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

#include <vouch/observe.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "worker_support.hpp"

namespace worker_log_test {

using namespace worker_test;
using vouch::event;
using vouch::log_level;

namespace {

/// Captures the process's stderr until it is read.
class captured_stderr {
  public:
    captured_stderr() {
        std::fflush(stderr);
        ::dup2(::fileno(file_), STDERR_FILENO);
    }
    captured_stderr(const captured_stderr&) = delete;
    captured_stderr& operator=(const captured_stderr&) = delete;
    ~captured_stderr() {
        restore();
        std::fclose(file_);
    }

    [[nodiscard]] std::string read() {
        restore();
        std::string text;
        std::rewind(file_);
        std::array<char, 4096> some{};
        while (const auto got = std::fread(some.data(), 1, some.size(), file_)) {
            text.append(some.data(), got);
        }
        return text;
    }

  private:
    void restore() {
        if (saved_ >= 0) {
            std::fflush(stderr);
            ::dup2(saved_, STDERR_FILENO);
            ::close(saved_);
            saved_ = -1;
        }
    }
    std::FILE* file_ = std::tmpfile();
    int saved_ = ::dup(STDERR_FILENO);
};

struct log_writing_observer {
    static constexpr bool writes_log = true;
    void on(const event&) noexcept {}
};

struct log_fixture {
    vouch::memory::store store{};
    vouch::outbox<vouch::memory::store> outbox{store};
    vouch::router<vouch::memory::store> routes{outbox};

    log_fixture() {
        routes.on("good", [](vouch::delivery&) {});
        routes.on("bad", [](vouch::delivery&) { throw vouch::reject("no_such_address"); });
        routes.on(
            "ugly", [](vouch::delivery&) { throw std::runtime_error("mail of ada@example.com"); },
            vouch::retry_policy::none());
    }

    /// Runs one entry of each topic and returns what the worker writes to stderr.
    template <class Prepare>
    [[nodiscard]] std::string run(vouch::worker_options options, Prepare&& prepare) {
        captured_stderr captured;
        {
            vouch::worker worker(outbox, std::move(options));
            worker.serve(routes, {.queue = "q"});
            prepare(worker);
            for (const std::string topic : {"good", "bad", "ugly"}) {
                outbox.emit({.queue = "q", .topic = topic});
            }
            running_worker running(worker);
            REQUIRE(eventually([&] { return store.counts("q").live() == 0; }));
            running.stop();
        }
        return captured.read();
    }
    [[nodiscard]] std::string run(vouch::worker_options options = {}) {
        return run(std::move(options), [](auto&) {});
    }
};

} // namespace

TEST_CASE("log: a worker without a logger writes warnings and errors to stderr, and nothing else") {
    const auto text = log_fixture{}.run();
    CHECK(text.find(" warning dead queue=q topic=bad ") != std::string::npos);
    CHECK(text.find(" error=no_such_address reason=rejected ") != std::string::npos);
    CHECK(text.find(" error=std::runtime_error reason=exhausted ") != std::string::npos);
    CHECK(text.find("topic=good") == std::string::npos);
    CHECK(text.find("ada@") == std::string::npos);
}

TEST_CASE("log: options set the level, turn the log off, and add the text of exceptions") {
    CHECK(log_fixture{}.run({.log = log_level::off}).empty());
    const auto info = log_fixture{}.run({.log = log_level::info});
    CHECK(info.find(" info succeeded queue=q topic=good ") != std::string::npos);
    const auto texts = log_fixture{}.run({.exception_text = true});
    CHECK(texts.find(" text=\"mail of ada@example.com\" ") != std::string::npos);
}

TEST_CASE("log: only an observer that writes a log replaces the worker's own") {
    std::string lines;
    vouch::logger mine(log_level::warning, [&](log_level, std::string_view line) { lines += line; });
    CHECK(log_fixture{}.run({}, [&](auto& worker) { worker.observe(mine); }).empty());
    CHECK(lines.find(" warning dead queue=q topic=bad ") != std::string::npos);

    vouch::observer_list list;
    list.add(mine);
    CHECK(log_fixture{}.run({}, [&](auto& worker) { worker.observe(list); }).empty());

    log_writing_observer elsewhere;
    CHECK(log_fixture{}.run({}, [&](auto& worker) { worker.observe(elsewhere); }).empty());

    vouch::testing::recorder seen;
    CHECK_FALSE(log_fixture{}.run({}, [&](auto& worker) { worker.observe(seen); }).empty());
}

TEST_CASE("log: store errors are logged, with their text if exception_text is set") {
    for (const bool exception_text : {false, true}) {
        captured_stderr captured;
        dropped_wakes_store store;
        std::atomic<int> faults = 0;
        store.hooks().at_begin = [&] {
            if (faults++ == 0) {
                throw vouch::error(vouch::error_kind::io, "disk of mail.db");
            }
        };
        const vouch::outbox outbox(store);
        vouch::router routes(outbox);
        vouch::worker<dropped_wakes_store> worker(outbox, {.exception_text = exception_text, .poll_interval = 5ms});
        worker.serve(routes, {.queue = "q"});
        running_worker running(worker);
        REQUIRE(eventually([&] { return faults > 1; }));
        running.stop();
        const auto text = captured.read();
        CHECK(text.find(" error store_error queue=q ") != std::string::npos);
        CHECK((text.find("disk of mail.db") != std::string::npos) == exception_text);
    }
}

TEST_CASE("log: a runner does not log") {
    log_fixture f;
    captured_stderr captured;
    vouch::runner runner(f.outbox, f.routes, {.queue = "q"});
    f.outbox.emit({.queue = "q", .topic = "bad"});
    CHECK(runner.run_once().dead == 1);
    CHECK(captured.read().empty());
}

} // namespace worker_log_test
