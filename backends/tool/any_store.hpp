// SPDX-License-Identifier: MIT
// A store of any kind behind one type, so that every command is compiled once. `stored_entries` models the contract's
// reader, `any_transaction` its transaction and `any_store` its store.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

namespace tool {

/// The reader of the contract.
class stored_entries {
  public:
    stored_entries() = default;
    stored_entries(const stored_entries&) = delete;
    stored_entries& operator=(const stored_entries&) = delete;
    virtual ~stored_entries() = default;
    [[nodiscard]] virtual std::optional<vouch::entry> find(const vouch::id& which) const = 0;
    [[nodiscard]] virtual std::vector<vouch::entry> list(const vouch::query& wanted) const = 0;
    [[nodiscard]] virtual vouch::state_counts counts(std::string_view queue) const = 0;
    [[nodiscard]] virtual std::optional<vouch::time_point> next_due(std::string_view queue) const = 0;
};

/// The transaction of the contract.
class any_transaction {
  public:
    template <vouch::transaction Transaction>
    explicit any_transaction(std::in_place_t, Transaction tx)
        : on_(std::make_unique<model<Transaction>>(std::move(tx))) {}

    [[nodiscard]] auto find(const vouch::id& which) const { return on_->find(which); }
    [[nodiscard]] auto list(const vouch::query& wanted) const { return on_->list(wanted); }
    [[nodiscard]] auto counts(std::string_view queue) const { return on_->counts(queue); }
    [[nodiscard]] auto next_due(std::string_view queue) const { return on_->next_due(queue); }
    auto enqueue(std::span<const vouch::draft> drafts, vouch::time_point now) { return on_->enqueue(drafts, now); }
    auto claim(const vouch::claim_request& request) { return on_->claim(request); }
    auto settle(std::span<const vouch::settle> settles, vouch::time_point now) { return on_->settle(settles, now); }
    auto extend(std::span<const vouch::ticket> tickets, vouch::time_point now, vouch::duration lease) {
        return on_->extend(tickets, now, lease);
    }
    auto nudge(const vouch::id& which, vouch::time_point now) { return on_->nudge(which, now); }
    auto cancel(const vouch::id& which, std::string_view error, vouch::time_point now) {
        return on_->cancel(which, error, now);
    }
    auto purge(const vouch::purge_request& request) { return on_->purge(request); }
    void commit() { on_->commit(); }

  private:
    struct concept_ : stored_entries {
        virtual std::vector<vouch::receipt> enqueue(std::span<const vouch::draft>, vouch::time_point) = 0;
        virtual std::vector<vouch::entry> claim(const vouch::claim_request&) = 0;
        virtual std::vector<vouch::settlement> settle(std::span<const vouch::settle>, vouch::time_point) = 0;
        virtual std::vector<vouch::verdict> extend(std::span<const vouch::ticket>, vouch::time_point,
                                                   vouch::duration) = 0;
        virtual vouch::verdict nudge(const vouch::id&, vouch::time_point) = 0;
        virtual vouch::verdict cancel(const vouch::id&, std::string_view, vouch::time_point) = 0;
        virtual std::size_t purge(const vouch::purge_request&) = 0;
        virtual void commit() = 0;
    };

    template <class Transaction>
    struct model final : concept_ {
        explicit model(Transaction of) : tx(std::move(of)) {}
        std::optional<vouch::entry> find(const vouch::id& which) const override { return tx.find(which); }
        std::vector<vouch::entry> list(const vouch::query& wanted) const override { return tx.list(wanted); }
        vouch::state_counts counts(std::string_view queue) const override { return tx.counts(queue); }
        std::optional<vouch::time_point> next_due(std::string_view queue) const override { return tx.next_due(queue); }
        std::vector<vouch::receipt> enqueue(std::span<const vouch::draft> d, vouch::time_point now) override {
            return tx.enqueue(d, now);
        }
        std::vector<vouch::entry> claim(const vouch::claim_request& r) override { return tx.claim(r); }
        std::vector<vouch::settlement> settle(std::span<const vouch::settle> s, vouch::time_point now) override {
            return tx.settle(s, now);
        }
        std::vector<vouch::verdict> extend(std::span<const vouch::ticket> t, vouch::time_point now,
                                           vouch::duration lease) override {
            return tx.extend(t, now, lease);
        }
        vouch::verdict nudge(const vouch::id& which, vouch::time_point now) override { return tx.nudge(which, now); }
        vouch::verdict cancel(const vouch::id& which, std::string_view error, vouch::time_point now) override {
            return tx.cancel(which, error, now);
        }
        std::size_t purge(const vouch::purge_request& r) override { return tx.purge(r); }
        void commit() override { tx.commit(); }
        Transaction tx;
    };

    std::unique_ptr<concept_> on_;
};

/// The store of the contract.
class any_store : public stored_entries {
  public:
    using transaction = any_transaction;
    static constexpr int contract_level = vouch::contract_level;

    [[nodiscard]] virtual any_transaction begin() = 0;
    [[nodiscard]] virtual vouch::capabilities capabilities() const = 0;
};

/// A reader of another type as `stored_entries`. The reader must outlive it.
template <vouch::reader Reader, class Base = stored_entries>
class reads_from : public Base {
  public:
    explicit reads_from(const Reader& in) : in_(in) {}
    [[nodiscard]] std::optional<vouch::entry> find(const vouch::id& which) const override { return in_.find(which); }
    [[nodiscard]] std::vector<vouch::entry> list(const vouch::query& wanted) const override { return in_.list(wanted); }
    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const override { return in_.counts(queue); }
    [[nodiscard]] std::optional<vouch::time_point> next_due(std::string_view queue) const override {
        return in_.next_due(queue);
    }

  private:
    const Reader& in_;
};

/// A store of another type as `any_store`. The store must outlive it.
template <vouch::store Store>
class works_on final : public reads_from<Store, any_store> {
  public:
    explicit works_on(Store& store) : reads_from<Store, any_store>(store), store_(store) {}
    [[nodiscard]] any_transaction begin() override { return any_transaction(std::in_place, store_.begin()); }
    [[nodiscard]] vouch::capabilities capabilities() const override { return store_.capabilities(); }

  private:
    Store& store_;
};

static_assert(vouch::reader<stored_entries>);
static_assert(vouch::store<any_store>);

} // namespace tool
