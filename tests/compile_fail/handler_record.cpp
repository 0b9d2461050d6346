// SPDX-License-Identifier: MIT
// expect: vouch: `record` is public and takes `transaction&`, then if it likes what `work` returned as `const R&`
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::router router(outbox);
    struct near_miss {
        std::string work(vouch::delivery&) { return {}; }
        void record(vouch::memory::transaction&, std::string&) {}
    };
    router.on("t", near_miss{});
}
