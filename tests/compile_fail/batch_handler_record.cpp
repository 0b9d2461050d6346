// SPDX-License-Identifier: MIT
// expect: vouch: a batch handler has no `record`; register a handler with `record` by on()
#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    struct with_record {
        void work(vouch::delivery_batch&) {}
        void record(vouch::memory::transaction&) {}
    };
    router.on_batch("t", with_record{});
}
