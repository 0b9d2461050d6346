// SPDX-License-Identifier: MIT
// expect: vouch: `ended` is a public `outcome ended(delivery&, ending)`
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::router router(outbox);
    struct near_miss {
        void work(vouch::delivery&) {}
        void ended(vouch::delivery&, vouch::ending) {}
    };
    router.on("t", near_miss{});
}
