// SPDX-License-Identifier: MIT
// A store that writes the calls on another store down as a test, with the transactions of `test_writer_transaction.hpp`.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/replay/test_writer_transaction.hpp>
#include <vouch/contract/query.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class test_writer_store final : public store_interface {
  public:
    test_writer_store(any_store store, std::shared_ptr<tracked_store> known, test_source& to)
        : store_(std::move(store)), known_(std::move(known)), name_(to.next_handle()), source_(to) {
        source_.add("auto " + name_ + " = open(" + std::to_string(known_->number) + ");");
        source_.note({.what = test_step::kind::open, .handle = name_, .store = known_->number});
        known_->is_checked = false;
    }
    test_writer_store(const test_writer_store&) = delete;
    test_writer_store& operator=(const test_writer_store&) = delete;
    ~test_writer_store() override {
        source_.add_end(name_, "closed");
        source_.note({.what = test_step::kind::close, .handle = name_});
    }

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return checked_store().find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override {
        if (is_new_query(q, *known_, source_)) {
            source_.note({.what = test_step::kind::list, .handle = name_, .query = q});
            known_->is_checked = false;
        }
        return checked_store().list(q);
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return checked_store().counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return checked_store().next_due(queue);
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> begin() override {
        auto tx = store_.begin();
        auto name = source_.next_transaction();
        source_.add("auto " + name + " = " + name_ + ".begin();");
        return std::make_unique<test_writer_transaction>(std::move(tx), std::move(name), store_, name_, known_,
                                                         source_);
    }
    [[nodiscard]] vouch::capabilities capabilities() const override { return store_.capabilities(); }
    [[nodiscard]] bool is_committing() const override { return store_.is_committing(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) override { return store_.wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) override {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

  private:
    [[nodiscard]] const any_store& checked_store() const {
        if (!known_->is_checked) {
            report_difference(store_, name_, known_->committed, *known_, source_);
        }
        return store_;
    }

    any_store store_;
    std::shared_ptr<tracked_store> known_;
    std::string name_;
    test_source& source_;
};

/// The same store, with its calls written to `to`, which must outlive it. Handles on one location share one model.
[[nodiscard]] inline any_store write_test(any_store store, test_source& to, const std::string& location = {}) {
    return any_store(std::make_shared<test_writer_store>(std::move(store), to.store_at(location), to));
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
