// SPDX-License-Identifier: MIT
// What a worker logs by itself: warnings and errors to stderr, unless an observer writes a log or an option says no.
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

/// What is written to the process's stderr until it is read.
class caught_stderr {
  public:
    caught_stderr() {
        std::fflush(stderr);
        ::dup2(::fileno(file_), STDERR_FILENO);
    }
    caught_stderr(const caught_stderr&) = delete;
    caught_stderr& operator=(const caught_stderr&) = delete;
    ~caught_stderr() {
        give_back();
        std::fclose(file_);
    }

    [[nodiscard]] std::string read() {
        give_back();
        std::string text;
        std::rewind(file_);
        std::array<char, 4096> some{};
        while (const auto got = std::fread(some.data(), 1, some.size(), file_)) {
            text.append(some.data(), got);
        }
        return text;
    }

  private:
    void give_back() {
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

struct own_way {
    static constexpr bool writes_log = true;
    void on(const event&) noexcept {}
};

struct office {
    vouch::memory::store store{};
    vouch::outbox<vouch::memory::store> outbox{store};
    vouch::router<vouch::memory::store> routes{outbox};

    office() {
        routes.on("good", [](vouch::delivery&) {});
        routes.on("bad", [](vouch::delivery&) { throw vouch::reject("no_such_address"); });
        routes.on(
            "ugly", [](vouch::delivery&) { throw std::runtime_error("mail of ada@example.com"); },
            vouch::retry_policy::none());
    }

    /// What a run over all three writes to stderr.
    template <class Prepare>
    [[nodiscard]] std::string work(vouch::worker_options options, Prepare&& prepare) {
        caught_stderr caught;
        {
            vouch::worker worker(outbox, std::move(options));
            worker.serve(routes, {.queue = "q"});
            prepare(worker);
            for (const std::string topic : {"good", "bad", "ugly"}) {
                outbox.emit({.queue = "q", .topic = topic});
            }
            at_work running(worker);
            REQUIRE(comes_true([&] { return store.counts("q").live() == 0; }));
            running.stop();
        }
        return caught.read();
    }
    [[nodiscard]] std::string work(vouch::worker_options options = {}) {
        return work(std::move(options), [](auto&) {});
    }
};

} // namespace

TEST_CASE("log: a worker without a logger writes warnings and errors to stderr, and nothing else") {
    const auto text = office{}.work();
    CHECK(text.find(" warning dead queue=q topic=bad ") != std::string::npos);
    CHECK(text.find(" error=no_such_address reason=rejected ") != std::string::npos);
    CHECK(text.find(" error=std::runtime_error reason=exhausted ") != std::string::npos);
    CHECK(text.find("topic=good") == std::string::npos);
    CHECK(text.find("ada@") == std::string::npos);
}

TEST_CASE("log: an option sets the level, another asks for the text of exceptions, and off is silence") {
    CHECK(office{}.work({.log = log_level::off}).empty());
    const auto info = office{}.work({.log = log_level::info});
    CHECK(info.find(" info succeeded queue=q topic=good ") != std::string::npos);
    const auto texts = office{}.work({.exception_text = true});
    CHECK(texts.find(" text=\"mail of ada@example.com\" ") != std::string::npos);
}

TEST_CASE("log: an observer that writes a log takes the place of the worker's own, any other does not") {
    std::string lines;
    vouch::logger mine(log_level::warning, [&](log_level, std::string_view line) { lines += line; });
    CHECK(office{}.work({}, [&](auto& worker) { worker.observe(mine); }).empty());
    CHECK(lines.find(" warning dead queue=q topic=bad ") != std::string::npos);

    vouch::observer_list list;
    list.add(mine);
    CHECK(office{}.work({}, [&](auto& worker) { worker.observe(list); }).empty());

    own_way elsewhere;
    CHECK(office{}.work({}, [&](auto& worker) { worker.observe(elsewhere); }).empty());

    vouch::testing::recorder seen;
    CHECK_FALSE(office{}.work({}, [&](auto& worker) { worker.observe(seen); }).empty());
}

TEST_CASE("log: the store's trouble is in it, with its text if asked for") {
    for (const bool asked : {false, true}) {
        caught_stderr caught;
        deaf_store store;
        std::atomic<int> faults = 0;
        store.wire().at_begin = [&] {
            if (faults++ == 0) {
                throw vouch::error(vouch::error_kind::io, "disk of mail.db");
            }
        };
        const vouch::outbox outbox(store);
        vouch::router routes(outbox);
        vouch::worker<deaf_store> worker(outbox, {.exception_text = asked, .poll_interval = 5ms});
        worker.serve(routes, {.queue = "q"});
        at_work running(worker);
        REQUIRE(comes_true([&] { return faults > 1; }));
        running.stop();
        const auto text = caught.read();
        CHECK(text.find(" error store_error queue=q ") != std::string::npos);
        CHECK((text.find("disk of mail.db") != std::string::npos) == asked);
    }
}

TEST_CASE("log: a runner logs nothing by itself") {
    office at;
    caught_stderr caught;
    vouch::runner runner(at.outbox, at.routes, {.queue = "q"});
    at.outbox.emit({.queue = "q", .topic = "bad"});
    CHECK(runner.run_once().dead == 1);
    CHECK(caught.read().empty());
}

} // namespace worker_log_test
