// SPDX-License-Identifier: MIT
// Memory for rows. A row never moves, so pointers to it stay valid until it is freed; freed rows are used again.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// `Row` is constructed from nothing or from a function that makes its entry, and has a public `entry` and
/// `Row* next_free`.
template <class Row>
class row_pool {
  public:
    /// A row with the entry that `make()` returns. If `make` throws, the pool is unchanged.
    template <class Make>
    Row& allocate(const Make& make) {
        if (auto* const r = free_) {
            r->entry = make();
            free_ = std::exchange(r->next_free, nullptr);
            return *r;
        }
        if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity()) {
            blocks_.emplace_back().reserve(rows_per_block);
        }
        return blocks_.back().emplace_back(make);
    }

    void free(Row& r) noexcept {
        r = Row();
        r.next_free = free_;
        free_ = &r;
    }

  private:
    static constexpr std::size_t rows_per_block = 64;
    std::vector<std::vector<Row>> blocks_; // all but the last are full; none grows beyond its reserved size
    Row* free_ = nullptr;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
