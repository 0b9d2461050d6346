// SPDX-License-Identifier: MIT
// expect: vouch: specialise vouch::codec for the payload's type
#include <string>

#include <vouch/vouch.hpp>

int main() {
    vouch::router<vouch::memory::store> router;
    struct odd {};
    router.on<odd>("t", [](const odd&) {});
}
