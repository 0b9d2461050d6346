// SPDX-License-Identifier: MIT
// expect: vouch: `ended` must be a public `outcome ended(delivery&, ending)`
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    struct near_miss {
        void work(vouch::delivery&) {}
        void ended(vouch::delivery&, vouch::ending) {}
    };
    router.on("t", near_miss{});
}
