// SPDX-License-Identifier: MIT
// `vouch serve` on a PostgreSQL store, and the entry that holds a lane there.
#include <cstdlib>
#include <string>

#include <vouch/page.hpp>
#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "page/browser.hpp"
#include "page/stores.hpp"
#include "tool.hpp"

namespace page_postgres_test {

#ifdef VOUCH_SERVE_TEST
TEST_CASE("page postgres: vouch serve answers and changes over HTTP") {
    page_test::in_postgres kept;
    const tool_test::some_of_everything entries(kept.store);
    const char* const folder = std::getenv("VOUCH_POSTGRES_FOLDER");
    REQUIRE(folder != nullptr);
    const auto url = "'postgres://postgres@/postgres?host=" + std::string(folder) + "' ";
    const auto got = tool_test::ask(std::string("python3 ") + VOUCH_SERVE_TEST + ' ' + VOUCH_TOOL + " none " + url +
                                    "--prefix " + kept.prefix);
    CHECK(says(got, "passed"));
    CHECK(got.code == 0);
}
#endif

} // namespace page_postgres_test
