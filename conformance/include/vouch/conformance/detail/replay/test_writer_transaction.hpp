// SPDX-License-Identifier: MIT
// A transaction that writes its calls down as a test. Each call expects the answer of the model, up to the first answer
// or entry that differs. Where the model cannot predict, because transactions overlap, the test shows the answer that
// was seen.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/replay/as_code.hpp>
#include <vouch/conformance/detail/replay/first_difference.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/expect.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/validate.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Reads everything and writes down the first difference from the model.
template <class Reader>
void report_difference(const Reader& reader, const std::string& name, const model& wanted, tracked_store& known,
                       test_source& to) {
    constexpr std::size_t many = 150;
    known.is_checked = true;
    if (!to.can_predict() || wanted.records.size() > many) {
        return;
    }
    std::string reading;
    try {
        if (auto line = first_difference(reader, name, wanted, known.names, reading); !line.empty()) {
            to.add(std::move(line));
            to.end_here();
        }
    } catch (const error& e) {
        // A conflict may come at any time, and a closed transaction cannot be read.
        if (e.kind() != error_kind::conflict && e.kind() != error_kind::misuse) {
            to.add("expect_no_error([&] { std::ignore = " + reading + "; }); // seen: " + show(e.kind()));
            to.end_here();
        }
    }
}

/// Adds a query to those that are compared. Returns whether it is new. A query with `after` has one store's sequences,
/// and a wrong query has no answer, so these are not compared.
[[nodiscard]] inline bool is_new_query(const query& q, tracked_store& known, const test_source& to) {
    if (q.after != 0 || !to.can_predict()) {
        return false;
    }
    try {
        validate(q, limits{});
    } catch (const error&) {
        return false;
    }
    return known.names.add_query(as_code(q), q);
}

class test_writer_transaction final : public transaction_interface {
  public:
    test_writer_transaction(any_transaction tx, std::string name, const any_store& store, std::string handle,
                            std::shared_ptr<tracked_store> known, test_source& to)
        : tx_(std::move(tx)), name_(std::move(name)), store_(store), handle_(std::move(handle)),
          known_(std::move(known)), own_(known_->committed), source_(to) {
        note(test_step::kind::begin);
        if (++known_->open > 1) {
            source_.stop_predicting();
        }
    }
    test_writer_transaction(const test_writer_transaction&) = delete;
    test_writer_transaction& operator=(const test_writer_transaction&) = delete;
    ~test_writer_transaction() override {
        if (!is_done_) {
            source_.add_end(name_, is_closed_ ? "closed" : "rolled back");
            note(test_step::kind::end);
            close();
            known_->is_checked = false;
        }
    }

    // Reads are not written down: everything is compared after every call, and only a difference is written.
    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return tx_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override {
        if (is_new_query(q, *known_, source_)) {
            source_.note({.what = test_step::kind::list, .handle = handle_, .transaction = name_, .query = q});
            report_difference(tx_, name_, own_, *known_, source_);
        }
        return tx_.list(q);
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return tx_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return tx_.next_due(queue);
    }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) override {
        limit_model(drafts.size());
        return write(
            name_ + ".enqueue(" + as_code("draft", drafts) + ", " + show(now) + ")",
            [again = std::vector(drafts.begin(), drafts.end()), now](auto& tx) { return tx.enqueue(again, now); },
            [&](const vouch::capabilities& can) { validate(drafts, can); }, [&] { return predicted(drafts, now); },
            [&] {
                auto receipts = tx_.enqueue(drafts, now);
                adopt_sequences(tx_, receipts);
                return receipts;
            });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) override {
        std::vector<entry> claimed;
        std::ignore = write(
            "tickets_of(" + name_ + ".claim(" + as_code(request) + "))",
            [request](auto& tx) { return tx.claim(request); },
            [&](const vouch::capabilities& can) { validate(request, can.limits); },
            [&] { return show_briefly(tickets_of(own_.claim(request))); },
            [&] {
                claimed = tx_.claim(request);
                return tickets_of(claimed);
            });
        return claimed;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) override {
        return write(
            name_ + ".settle(" + as_code("vouch::settle", settles) + ", " + show(now) + ")",
            [again = std::vector(settles.begin(), settles.end()), now](auto& tx) { return tx.settle(again, now); },
            [&](const vouch::capabilities& can) { validate(settles, can.limits); },
            [&] { return one_by_one(settles, [&](const vouch::settle& s) { return own_.settle(s, now); }); },
            [&] { return tx_.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                              duration lease) override {
        return write(
            name_ + ".extend(" + as_code("ticket", tickets) + ", " + show(now) + ", " + show(lease) + ")",
            [again = std::vector(tickets.begin(), tickets.end()), now, lease](auto& tx) {
                return tx.extend(again, now, lease);
            },
            [&](const vouch::capabilities& can) { validate(tickets, now, lease, can.limits); },
            [&] { return one_by_one(tickets, [&](const ticket& t) { return own_.extend(t, now, lease); }); },
            [&] { return tx_.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) override {
        return write(
            name_ + ".nudge(" + members::value_of(wanted) + ", " + show(now) + ")",
            [wanted, now](auto& tx) { return tx.nudge(wanted, now); }, [](const vouch::capabilities&) {},
            [&] { return show(own_.nudge(wanted, now)); }, [&] { return tx_.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) override {
        const std::string code(error);
        return write(
            name_ + ".cancel(" + members::value_of(wanted) + ", " + members::value_of(code) + ", " + show(now) + ")",
            [wanted, code, now](auto& tx) { return tx.cancel(wanted, code, now); },
            [&](const vouch::capabilities& can) { validate_error_code(error, can.limits); },
            [&] { return show(own_.cancel(wanted, code, now)); }, [&] { return tx_.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) override {
        return write(
            name_ + ".purge(" + as_code(request) + ")", [request](auto& tx) { return tx.purge(request); },
            [&](const vouch::capabilities& can) { validate(request, can.limits); },
            [&] { return show(own_.purge(request)); }, [&] { return tx_.purge(request); });
    }
    void commit() override {
        struct done {};
        const auto code = name_ + ".commit()";
        source_.add(code + ";");
        note(test_step::kind::call, [](any_transaction& tx) { tx.commit(); });
        perform(code + ";", refusal([](const vouch::capabilities&) {}), [&] {
            tx_.commit();
            return done{};
        });
        finish();
    }
    std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) override {
        limit_model(drafts.size());
        const auto code = "enqueue_and_commit(" + name_ + ", " + as_code("draft", drafts) + ", " + show(now) + ")";
        source_.add("std::ignore = " + code + ";");
        note(test_step::kind::call, [again = std::vector(drafts.begin(), drafts.end()), now](any_transaction& tx) {
            tx.enqueue_last(again, now);
        });
        const auto due = refusal([&](const vouch::capabilities& can) { validate(drafts, can); });
        const auto wanted = due || !source_.can_predict() ? std::string() : predicted(drafts, now);
        auto receipts = perform("std::ignore = " + code + ";", due, [&] { return tx_.enqueue_last(drafts, now); });
        write_answer(code, due, wanted, show_briefly(receipts));
        adopt_sequences(store_, receipts);
        finish();
        return receipts;
    }
    [[nodiscard]] std::optional<std::vector<entry>> claim_last(const claim_request& request) override {
        const auto call = "claim_and_commit(" + name_ + ", " + as_code(request) + ")";
        source_.add("std::ignore = " + call + ";");
        note(test_step::kind::call, [request](any_transaction& tx) { std::ignore = tx.claim_last(request); });
        const auto due = refusal([&](const vouch::capabilities& can) { validate(request, can.limits); });
        auto after = own_;
        const bool predicts = !due && source_.can_predict();
        const auto wanted = predicts ? after.claim(request) : std::vector<entry>{};
        const bool must_leave = own_.has_claimed(wanted);
        auto claimed = perform("std::ignore = " + call + ";", due, [&] { return tx_.claim_last(request); });
        const auto seen = show_briefly(tickets_of(claimed));
        if (!due && (!claimed || must_leave)) { // the store may always leave a claim
            source_.rewrite("leave_" + call + ";" + (claimed ? " // seen: " + seen : ""));
            claimed ? source_.end_here() : void();
        } else {
            write_answer("tickets_of(" + call + ")", due, predicts ? show_briefly(tickets_of(wanted)) : "", seen);
            own_ = after;
        }
        finish();
        return claimed;
    }
    [[nodiscard]] settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                  const claim_request& request) override {
        const auto arguments =
            "(" + name_ + ", " + as_code("vouch::settle", settles) + ", " + show(now) + ", " + as_code(request) + ")";
        const auto call = "settle_claim_and_commit" + arguments;
        source_.add("std::ignore = " + call + ";");
        note(test_step::kind::call, [again = std::vector(settles.begin(), settles.end()), now, request](
                                        any_transaction& tx) { std::ignore = tx.settle_last(again, now, request); });
        const auto due = refusal([&](const vouch::capabilities& can) {
            validate(settles, can.limits);
            validate(request, can.limits);
        });
        const bool predicts = !due && source_.can_predict();
        auto after = own_;
        const auto wanted = predicts ? predicted(settles, now, request, after) : settled_and_claimed{};
        const bool must_leave = wanted.claimed && own_.has_claimed(*wanted.claimed);
        auto done = perform("std::ignore = " + call + ";", due, [&] { return tx_.settle_last(settles, now, request); });
        if (wanted.claimed && (!done.claimed || must_leave)) { // the store may always leave a claim
            const auto left = "settle_leave_claim_and_commit" + arguments;
            write_answer(left, due, show_briefly(wanted.settlements), show_briefly(done.settlements));
            if (done.claimed) {
                source_.rewrite("std::ignore = " + left + "; // seen: " + show_briefly(tickets_of(done.claimed)));
                source_.end_here();
            }
        } else {
            write_answer(call, due, predicts ? show_briefly(wanted) : "", show_briefly(done));
            own_ = predicts && !wanted.claimed ? known_->committed : after; // if refused, it has rolled back
        }
        finish();
        return done;
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> move_out() override {
        auto name = source_.next_transaction();
        source_.add("auto " + name + " = std::move(" + name_ + ");");
        source_.stop_noting();
        auto out = std::make_unique<test_writer_transaction>(tx_.move_out(), std::move(name), store_, handle_, known_,
                                                             source_);
        out->own_ = own_;
        close();
        is_done_ = true;
        return out;
    }
    void move_assign(transaction_interface& from) override {
        auto& source = static_cast<test_writer_transaction&>(from);
        source_.add(name_ + " = std::move(" + source.name_ + ");");
        source_.stop_noting();
        source_.stop_predicting(); // the two may be of different stores
        tx_.move_assign(source.tx_);
    }

  private:
    /// The error that the call must throw, because of an argument or because the transaction is closed.
    template <class Check>
    [[nodiscard]] std::optional<error_kind> refusal(const Check& check) const {
        if (is_closed_) {
            return error_kind::misuse;
        }
        try {
            check(store_.capabilities());
            return std::nullopt;
        } catch (const error& e) {
            return e.kind();
        }
    }

    template <class Item, class Ask>
    [[nodiscard]] static std::string one_by_one(std::span<const Item> items, const Ask& ask) {
        std::vector<decltype(ask(items.front()))> out;
        for (const auto& item : items) {
            out.push_back(ask(item));
        }
        return show_briefly(out);
    }

    void limit_model(std::size_t more) {
        constexpr std::size_t entries_max = 2'000; // the model is simple, and slow with more
        if (own_.records.size() + more > entries_max) {
            source_.stop_predicting();
        }
    }

    [[nodiscard]] std::string predicted(std::span<const draft> drafts, time_point now) {
        for (const auto& d : drafts) {
            known_->names.add(d);
        }
        return one_by_one(drafts, [&](const draft& d) { return own_.enqueue(d, now); });
    }

    /// Applies the settles to `own_`. If none is refused, `after` is what it is after the claim.
    [[nodiscard]] settled_and_claimed predicted(std::span<const vouch::settle> settles, time_point now,
                                                const claim_request& request, model& after) {
        settled_and_claimed out;
        for (const auto& s : settles) {
            out.settlements.push_back(own_.settle(s, now));
        }
        if (all_applied(out.settlements)) {
            after = own_;
            out.claimed = after.claim(request);
        }
        return out;
    }

    /// The store chooses the sequences. `reader` sees them.
    template <class Reader>
    void adopt_sequences(const Reader& reader, const std::vector<receipt>& receipts) {
        if (!source_.can_predict()) {
            return;
        }
        for (auto& r : own_.records) {
            for (const auto& one : receipts) {
                const bool is_new = one.what == receipt::kind::inserted && one.id == r.entry.id;
                if (const auto stored = is_new ? reader.find(one.id) : std::nullopt) {
                    r.entry.sequence = stored->sequence;
                }
            }
        }
    }

    /// Makes the call. If it throws, or should throw, writes that down.
    template <class Call>
    std::invoke_result_t<Call&> perform(const std::string& statement, std::optional<error_kind> due, const Call& call) {
        const auto throwing = [&](error_kind kind) {
            return "expect_error(error_kind::" + show(kind) + ", [&] { " + statement + " });";
        };
        try {
            auto answer = call();
            if (due) {
                source_.rewrite(throwing(*due) + " // seen: no error");
                source_.end_here();
            }
            return answer;
        } catch (const error& e) {
            if (due) {
                source_.rewrite(throwing(*due) + (e.kind() == *due ? "" : " // seen: " + show(e.kind())));
            } else {
                source_.rewrite("let_fail([&] { " + statement + " }); // throws " + show(e.kind()) +
                                (e.is_in_doubt() ? ", in doubt" : ""));
                source_.note_throw("expect_no_error([&] { " + statement + " }); // seen: " + show(e.kind()));
            }
            if (due && e.kind() != *due) {
                source_.end_here();
            } else if (e.is_in_doubt()) {
                source_.stop_predicting();
            }
            if (e.kind() != error_kind::invalid_argument) {
                close();
            }
            throw;
        } catch (...) {
            source_.rewrite(statement + " // throws an exception that is not a vouch::error");
            throw;
        }
    }

    /// `again(tx)` makes the same call on another transaction.
    template <class Again, class Check, class Ask, class Call>
    std::invoke_result_t<Call&> write(const std::string& code, Again again, const Check& check, const Ask& ask,
                                      const Call& call) {
        source_.add("std::ignore = " + code + ";");
        note(test_step::kind::call, [again = std::move(again)](any_transaction& tx) { std::ignore = again(tx); });
        const auto due = refusal(check);
        const auto wanted = due || !source_.can_predict() ? std::string() : ask();
        auto answer = perform("std::ignore = " + code + ";", due, call);
        write_answer(code, due, wanted, show_briefly(answer));
        report_difference(tx_, name_, own_, *known_, source_);
        report_difference(store_, handle_, known_->committed, *known_, source_);
        return answer;
    }

    /// `wanted` is empty if the model cannot predict the answer.
    void write_answer(const std::string& code, std::optional<error_kind> due, const std::string& wanted,
                      const std::string& seen) {
        if (wanted.empty() && !due) {
            source_.rewrite("std::ignore = " + code + "; // " + seen);
        } else if (!due) {
            source_.rewrite("expect(" + code + ", " + as_literal(wanted) + ");" +
                            (seen == wanted ? "" : " // seen: " + seen));
        }
        if (!wanted.empty() && seen != wanted) {
            source_.end_here();
        }
    }

    /// The transaction has committed.
    void finish() {
        close();
        is_done_ = true;
        known_->committed = own_;
        report_difference(store_, handle_, own_, *known_, source_);
    }

    void note(test_step::kind what, std::function<void(any_transaction&)> repeat = {}) {
        source_.note({.what = what, .handle = handle_, .transaction = name_, .repeat = std::move(repeat)});
    }

    void close() {
        known_->open -= is_closed_ ? 0U : 1U;
        is_closed_ = true;
    }

    any_transaction tx_;
    std::string name_;
    any_store store_; ///< to read what is committed
    std::string handle_;
    std::shared_ptr<tracked_store> known_;
    model own_; ///< what the transaction must see
    test_source& source_;
    bool is_closed_ = false; ///< its use is misuse
    bool is_done_ = false;   ///< committed or moved from
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
