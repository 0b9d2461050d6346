// SPDX-License-Identifier: MIT
// Fills a SQLite file with the work of a shop, for the tests of the page in a browser.
//
//   page_shop FILE small      entries of every kind in five queues, sagas in every position, hostile names
//   page_shop FILE large N    N entries, three of which are stuck for different reasons
//   page_shop FILE work S     work on a queue `fast` at full speed for S seconds, and print how many entries were done
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

namespace {

using namespace std::chrono_literals;
using store_type = vouch::sqlite::store;

struct shop {
    store_type store;
    vouch::time_point now = vouch::system_now();
    vouch::clock clock = [this] { return now; };
    vouch::outbox<store_type> outbox{store, {.clock = clock}};

    explicit shop(const std::string& path) : store(path, {.synchronous = vouch::sqlite::synchronous::normal}) {}

    vouch::id emit(vouch::emission e) { return outbox.emit(std::move(e)).front().id; }
    vouch::entry claim(const vouch::id& id, const std::string& queue, const char* worker,
                       vouch::duration lease = 10min) {
        return vouch::claim(store, {.queue = queue, .now = now, .lease = lease, .worker = worker, .only = id}).at(0);
    }
    void settle(const vouch::entry& e, vouch::outcome how) {
        vouch::transact(store, [&](auto& tx) {
            const std::array settles{vouch::settle{ticket_of(e), std::move(how)}};
            static_cast<void>(tx.settle(settles, now));
        });
    }
    void done(const std::string& queue, const char* topic, int many) {
        for (int i = 0; i < many; ++i) {
            const auto id =
                emit({.queue = queue, .topic = topic, .payload = R"({"order": )" + std::to_string(i) + '}'});
            settle(claim(id, queue, "mailer-1"), vouch::succeed{});
        }
    }
};

void add_sagas(shop& s) {
    const auto order =
        vouch::define_saga<std::string>("order", {.version = 3})
            .step(
                "payment", [](const std::string&) { return std::string("charge-4711"); },
                [](const std::string& what) {
                    if (what == "a grand piano") {
                        throw vouch::reject("refund_refused");
                    }
                })
            .step(
                "stock", [](const std::string&) { return std::string("shelf 12"); }, [](const std::string&) {})
            .command("courier", {.queue = "courier", .topic = "courier.book", .undo = "courier.cancel", .timeout = 12h})
            .step("invoice",
                  [](const std::string& what) {
                      if (what != "a book") {
                          throw vouch::reject("address_unknown");
                      }
                  })
            .build();
    vouch::router router(s.outbox);
    router.on(order);
    router.on("courier.book", [](vouch::delivery&) { return std::string("tour 9"); });
    router.on("courier.cancel", [](vouch::delivery&) {});
    const auto run = [&](const char* what, int passes, bool has_courier) {
        static_cast<void>(s.outbox.start(order, "orders", std::string(what)));
        for (int i = 0; i < passes; ++i) {
            s.now += 1s;
            static_cast<void>(vouch::runner(s.outbox, router, {.queue = "orders"}).run_once());
            if (has_courier) {
                static_cast<void>(vouch::runner(s.outbox, router, {.queue = "courier"}).run_once());
            }
        }
    };
    run("a book", 12, true);        // completed
    run("a lamp", 20, true);        // compensated
    run("a grand piano", 20, true); // dead: the refund is refused
    run("a table", 6, false);       // waits for the courier
}

void fill_small(shop& s) {
    s.now -= 26h;
    s.done("mail", "user.created", 60);
    s.now += 20h;
    add_sagas(s);
    s.now += 4h;
    for (int i = 0; i < 14; ++i) {
        const auto id =
            s.emit({.queue = "mail",
                    .topic = i % 3 == 0 ? "invoice.send" : "user.created",
                    .payload = R"({"to": "ada@example.com", "template": "welcome", "order": {"id": )" +
                               std::to_string(i) + R"(, "items": ["book", "lamp"]}})",
                    .headers = {{"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}});
        s.settle(s.claim(id, "mail", "mailer-1"),
                 vouch::bury{.error = i % 3 == 0 ? "address_rejected" : "smtp_timeout"});
    }
    const auto first =
        s.emit({.queue = "billing", .topic = "charge", .payload = "customer 7, 19.90 EUR", .lane = "customer-7"});
    static_cast<void>(
        s.emit({.queue = "billing", .topic = "charge", .payload = "customer 7, 5.00 EUR", .lane = "customer-7"}));
    s.settle(s.claim(first, "billing", "biller-2"), vouch::retry{.error = "bank_closed", .at = s.now + 9h});
    s.now = vouch::system_now() - 50min;
    static_cast<void>(
        s.emit({.queue = "reports", .topic = "report.monthly", .payload = std::string("\x00\x01\xffPDF\n", 7)}));
    const auto lost = s.emit({.queue = "images", .topic = "image.resize", .payload = "cat.jpg"});
    static_cast<void>(s.claim(lost, "images", "resizer-4", 2min));
    // A name is text, whatever it looks like.
    static_cast<void>(s.emit({.queue = "<img src=x onerror=document.title='owned'>",
                              .topic = "</script><script>document.title='owned'</script>",
                              .payload = "<script>document.title='owned'</script><b>bold</b>",
                              .lane = "\xe2\x80\xaegnp.exe",
                              .headers = {{"<b>h</b>", "\"><svg onload=document.title='owned'>"}}}));
    s.now = vouch::system_now();
    for (int i = 0; i < 25; ++i) {
        static_cast<void>(
            s.emit({.queue = "mail", .topic = "user.created", .payload = R"({"to": "bob"})", .due_in = 1min * i}));
    }
    static_cast<void>(s.claim(s.emit({.queue = "mail", .topic = "user.created"}), "mail", "mailer-1"));
}

/// Most have succeeded or are due later, as in a store that is used; three are stuck.
void fill_large(shop& s, std::size_t many) {
    const auto start = s.now;
    std::vector<vouch::draft> drafts;
    const vouch::uuid7_source ids;
    const auto write = [&] {
        static_cast<void>(vouch::enqueue(s.store, drafts, s.now));
        drafts.clear();
    };
    const auto stuck = [&](std::size_t i) {
        s.now = start - 3h;
        if (i == 1) { // no worker
            static_cast<void>(s.emit({.queue = "reports", .topic = "report.monthly"}));
        } else if (i == 2) { // a worker that died
            const auto id = s.emit({.queue = "mail", .topic = "invoice.send"});
            static_cast<void>(s.claim(id, "mail", "mailer-3", 5min));
        } else if (i == 3) { // behind a head that waits for a day
            const auto head = s.emit({.queue = "billing", .topic = "charge", .lane = "customer-7"});
            static_cast<void>(s.emit({.queue = "billing", .topic = "charge", .lane = "customer-7"}));
            s.settle(s.claim(head, "billing", "biller-1"), vouch::retry{.error = "bank_closed", .at = start + 21h});
        }
        s.now = start;
    };
    for (std::size_t i = 0; i < many; ++i) {
        vouch::draft d{
            .id = ids(), .queue = i % 10 == 0 ? "billing" : "mail", .topic = "user.created", .payload = "{}"};
        if (i % 4 == 0) {
            d.due_at = start + 24h;
        } else {
            d.result = "ok";
        }
        drafts.push_back(std::move(d));
        if (drafts.size() == 10'000) {
            write();
        }
        if (i == many / 4 || i == many / 2 || i == many / 4 * 3) {
            write();
            stuck(i / (many / 4));
        }
    }
    write();
}

void work(shop& s, int seconds) {
    const vouch::outbox outbox(s.store);
    vouch::router router(outbox);
    router.on("fast", [](vouch::delivery&) {});
    std::size_t done = 0;
    std::vector<vouch::draft> drafts;
    const vouch::uuid7_source ids;
    vouch::runner runner(outbox, router, {.queue = "fast", .batch_size = 100});
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{seconds};
    while (std::chrono::steady_clock::now() < end) {
        for (int i = 0; i < 100; ++i) {
            drafts.push_back({.id = ids(), .queue = "fast", .topic = "fast"});
        }
        static_cast<void>(vouch::enqueue(s.store, drafts, vouch::system_now()));
        drafts.clear();
        done += runner.run_once().succeeded;
    }
    std::printf("%zu\n", done);
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    if (words.size() < 2) {
        std::fprintf(stderr, "page_shop FILE small | large N | work SECONDS\n");
        return 2;
    }
    shop s{std::string(words[0])};
    const auto number = words.size() > 2 ? std::strtoul(words[2].data(), nullptr, 10) : 0;
    if (words[1] == "large") {
        fill_large(s, number);
    } else if (words[1] == "work") {
        work(s, static_cast<int>(number));
    } else {
        fill_small(s);
    }
    return 0;
}
