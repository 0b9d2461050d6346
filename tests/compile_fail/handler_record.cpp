// SPDX-License-Identifier: MIT
// expect: vouch: `record` must be public and take `transaction&`, optionally followed by the result of `work` as `const R&`
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    struct near_miss {
        std::string work(vouch::delivery&) { return {}; }
        void record(vouch::memory::transaction&, std::string&) {}
    };
    router.on("t", near_miss{});
}
