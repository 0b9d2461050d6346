// SPDX-License-Identifier: MIT
// expect: vouch: `ended` must be a public `outcome ended(delivery&, ending)`
#include <vouch/vouch.hpp>

class secretive {
  public:
    void work(vouch::delivery&) {}

  private:
    vouch::outcome ended(vouch::delivery&, vouch::ending) { return vouch::succeed{}; }
};

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on("t", secretive{});
}
