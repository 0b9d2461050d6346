// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `std::size_t purge(const purge_request&)`
#include <vouch/conformance/any_store.hpp>

#include "whole.hpp"

struct lacking : whole::transaction {
    void purge() = delete;
};
struct fixture {
    whole::store_of<lacking> open();
};
const auto wrapped = vouch::conformance::erase([] { return fixture{}.open(); });
