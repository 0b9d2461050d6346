// SPDX-License-Identifier: MIT
// expect: vouch: `record` must be public and take `transaction&`, optionally followed by the result of `work` as `const R&`
#include <string>

#include <vouch/vouch.hpp>

class secretive {
  public:
    std::string work(vouch::delivery&) { return {}; }

  private:
    void record(vouch::memory::transaction&, const std::string&) {}
};

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on("t", secretive{});
}
