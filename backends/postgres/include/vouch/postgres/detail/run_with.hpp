// SPDX-License-Identifier: MIT
// One statement with parameters on a connection outside pipeline mode: for what is not part of the contract.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <libpq-fe.h>

#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/rows.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

inline rows run_with(PGconn* c, const std::string& text, std::string_view doing, const parameters& values) {
    constexpr int binary = 1;
    const auto lists = values.for_libpq();
    result_ptr result(PQexecParams(c, text.c_str(), lists.size(), nullptr, lists.values.data(), lists.lengths.data(),
                                   lists.formats.data(), binary));
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        throw error_of(sqlstate_of(result.get()), doing);
    }
    return rows(std::move(result));
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
