// SPDX-License-Identifier: MIT
// A program that offers the operator's page.
#include <cstdio>

#include <vouch/page.hpp>
#include <vouch/vouch.hpp>

int main() {
    vouch::memory::store store;
    vouch::page::site site(store);
    const auto answer = site.answer({.path = "/healthz", .headers = {{"Host", "localhost"}}});
    std::fputs(answer.body.c_str(), stdout);
    return answer.status == 200 ? 0 : 1;
}
