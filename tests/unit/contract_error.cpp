// SPDX-License-Identifier: MIT
// The exception of the contract: its codes, and that it can be copied without a throw.
#include <string>
#include <type_traits>

#include <vouch/vouch.hpp>

#include "catch.hpp"

namespace contract_error_test {

namespace {

using vouch::error;
using vouch::error_kind;

TEST_CASE("error: keeps the backend's codes, and cuts a long text code") {
    const error plain(error_kind::io, "no");
    CHECK(plain.code() == 0);
    CHECK(plain.text_code().empty());
    CHECK(!plain.is_in_doubt());

    const error state(error_kind::conflict, "lost", {.in_doubt = true, .code = 7, .text_code = "40001"});
    CHECK(state.text_code() == "40001");
    CHECK(state.code() == 7);
    CHECK(state.is_in_doubt());

    const error cut(error_kind::io, "no", {.text_code = "0123456789abcdefgh"});
    CHECK(cut.text_code() == std::string("0123456789abcdefgh").substr(0, error::text_code_max));
}

TEST_CASE("error: copying one does not throw") {
    CHECK(std::is_nothrow_copy_constructible_v<error>);
    CHECK(std::is_nothrow_copy_assignable_v<error>);
}

} // namespace

} // namespace contract_error_test
