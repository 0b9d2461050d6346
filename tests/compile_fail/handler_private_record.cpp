// SPDX-License-Identifier: MIT
// expect: vouch: `record` is public and takes `transaction&`, then if it likes what `work` returned as `const R&`
#include <string>

#include <vouch/vouch.hpp>

class secretive {
  public:
    std::string work(vouch::delivery&) { return {}; }

  private:
    void record(vouch::memory::transaction&, const std::string&) {}
};

int main() {
    vouch::router router(outbox);
    router.on("t", secretive{});
}
