// SPDX-License-Identifier: MIT
// expect: vouch: a handler of on<T>() takes `const T&`, or `const T&` and then `delivery&`
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on<std::string>("t", [](vouch::delivery&, const std::string&) {});
}
