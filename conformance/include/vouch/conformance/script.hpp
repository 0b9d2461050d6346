// SPDX-License-Identifier: MIT
// Writes down the calls a store gets, as C++ that compiles, each with what it answered. Not for several threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/show.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

class script {
  public:
    void add(std::string line) { lines_.push_back(std::move(line)); }
    /// Adds what was answered to the newest line.
    void answer(const std::string& text) { lines_.back() += " // " + text; }
    void clear() {
        lines_.clear();
        stores_ = transactions_ = 0;
    }

    [[nodiscard]] std::string next_store() { return "s" + std::to_string(++stores_); }
    [[nodiscard]] std::string next_transaction() { return "tx" + std::to_string(++transactions_); }

    /// A function that makes the same calls on handles of any store.
    [[nodiscard]] std::string text() const {
        std::string out = "#include <vouch/conformance.hpp>\n\n"
                          "/// `open()` gives a handle on the same store each time.\n"
                          "template <class Open>\nvoid replay(Open&& open) {\n"
                          "    using namespace vouch;\n    using namespace vouch::conformance;\n"
                          "    using namespace std::chrono_literals;\n";
        for (const auto& line : lines_) {
            out += "    " + line + "\n";
        }
        return out + "}\n";
    }
    [[nodiscard]] std::size_t size() const noexcept { return lines_.size(); }

  private:
    std::vector<std::string> lines_{};
    std::size_t stores_ = 0;
    std::size_t transactions_ = 0;
};

namespace detail {

/// A list of `.name = value` with those that are not as usual.
class members {
  public:
    template <class T>
    void add(std::string_view name, const T& value) {
        out_ += std::string(out_.empty() ? "" : ", ") + "." + std::string(name) + " = " + value_of(value);
    }
    template <class T>
    void add_if(bool wanted, std::string_view name, const T& value) {
        if (wanted) {
            add(name, value);
        }
    }
    [[nodiscard]] std::string str() const { return "{" + out_ + "}"; }

    template <class T>
    [[nodiscard]] static std::string value_of(const T& value) {
        return show(value);
    }
    [[nodiscard]] static std::string value_of(state value) { return "state::" + show(value); }
    template <class T>
    [[nodiscard]] static std::string value_of(const std::optional<T>& value) {
        return value ? value_of(*value) : "std::nullopt";
    }
    /// Whole, and with its NULs.
    [[nodiscard]] static std::string value_of(const std::string& value) {
        constexpr std::size_t long_text = 60;
        if (value.size() > long_text && value.find_first_not_of(value.front()) == std::string::npos) {
            return "std::string(" + std::to_string(value.size()) + ", " + letter(value.front()) + ")";
        }
        if (value.size() > long_text) {
            return "std::string(" + std::to_string(value.size()) + ", 'x')";
        }
        return value.find('\0') == std::string::npos
                   ? show(value)
                   : "std::string(" + show(value) + ", " + std::to_string(value.size()) + ")";
    }
    [[nodiscard]] static std::string value_of(const id_list& values) {
        std::string out;
        for (const auto& one : values) {
            out += (out.empty() ? "" : ", ") + show(one);
        }
        return "{" + out + "}";
    }
    [[nodiscard]] static std::string value_of(const header_list& values) {
        std::string out;
        for (const auto& [name, value] : values) {
            out += (out.empty() ? "{" : ", {") + value_of(name) + ", " + value_of(value) + "}";
        }
        return "{" + out + "}";
    }

  private:
    [[nodiscard]] static std::string letter(char c) {
        auto text = show(std::string_view(&c, 1));
        text.front() = text.back() = '\'';
        return text;
    }

    std::string out_{};
};

[[nodiscard]] inline std::string as_code(const draft& d) {
    members m;
    m.add("id", d.id);
    m.add("queue", d.queue);
    m.add("topic", d.topic);
    m.add_if(!d.payload.empty(), "payload", d.payload);
    m.add_if(!d.key.empty(), "key", d.key);
    m.add_if(!d.group.empty(), "group", d.group);
    m.add_if(!d.lane.empty(), "lane", d.lane);
    m.add_if(!d.parent.is_nil(), "parent", d.parent);
    m.add_if(!d.predecessor.is_nil(), "predecessor", d.predecessor);
    m.add_if(d.due_at.has_value(), "due_at", d.due_at);
    m.add_if(d.expires_at.has_value(), "expires_at", d.expires_at);
    m.add_if(d.attempts_max != 0, "attempts_max", d.attempts_max);
    m.add_if(!d.trail.empty(), "trail", d.trail);
    m.add_if(!d.headers.empty(), "headers", d.headers);
    m.add_if(!d.progress.empty(), "progress", d.progress);
    m.add_if(d.result.has_value(), "result", d.result);
    return "draft" + m.str();
}

[[nodiscard]] inline std::string as_code(const claim_request& r) {
    members m;
    m.add("queue", r.queue);
    m.add("limit", r.limit);
    m.add("now", r.now);
    m.add("lease", r.lease);
    m.add_if(!r.worker.empty(), "worker", r.worker);
    m.add_if(!r.only.is_nil(), "only", r.only);
    return "claim_request" + m.str();
}

[[nodiscard]] inline std::string as_code(const purge_request& r) {
    members m;
    m.add("queue", r.queue);
    m.add("before", r.before);
    m.add("limit", r.limit);
    m.add_if(r.state.has_value(), "state", r.state);
    return "purge_request" + m.str();
}

struct outcome_as_code {
    std::string operator()(const succeed& o) const { return "succeed{" + members::value_of(o.result) + "}"; }
    std::string operator()(const retry& o) const {
        return "retry{" + members::value_of(o.error) + ", " + show(o.at) + "}";
    }
    std::string operator()(const bury& o) const {
        return "bury{" + members::value_of(o.error) + ", " + members::value_of(o.result) + "}";
    }
    std::string operator()(const release& o) const { return "release{" + members::value_of(o.at) + "}"; }
    std::string operator()(const advance& o) const {
        return "advance{" + members::value_of(o.progress) + ", " + members::value_of(o.at) + "}";
    }
};

[[nodiscard]] inline std::string as_code(const settle& s) {
    return "vouch::settle{" + show(s.ticket) + ", " + visit_outcome(outcome_as_code{}, s.outcome) + "}";
}
[[nodiscard]] inline std::string as_code(const ticket& t) { return show(t); }

template <class T>
[[nodiscard]] std::string as_code(std::string_view type, std::span<const T> items) {
    std::string out;
    for (const auto& item : items) {
        out += (out.empty() ? "" : ", ") + as_code(item);
    }
    return "std::vector<" + std::string(type) + ">{" + out + "}";
}

class scripted_transaction final : public transaction_face {
  public:
    scripted_transaction(any_transaction tx, std::string name, script& to)
        : tx_(std::move(tx)), name_(std::move(name)), script_(to) {}
    scripted_transaction(const scripted_transaction&) = delete;
    scripted_transaction& operator=(const scripted_transaction&) = delete;
    ~scripted_transaction() override {
        if (!is_over_) {
            script_.add("{ auto gone = std::move(" + name_ + "); } // rolled back");
        }
    }

    // Reads are not written down: the suite compares all there is after every call.
    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return tx_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return tx_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return tx_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return tx_.next_due(queue);
    }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) override {
        return write("enqueue(" + as_code("draft", drafts) + ", " + show(now) + ")",
                     [&] { return tx_.enqueue(drafts, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) override {
        script_.add("std::ignore = " + name_ + ".claim(" + as_code(request) + ");");
        auto claimed = answered([&] { return tx_.claim(request); });
        std::vector<ticket> tickets;
        for (const auto& e : claimed) {
            tickets.push_back(ticket_of(e));
        }
        script_.answer(show(tickets));
        return claimed;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) override {
        return write("settle(" + as_code("vouch::settle", settles) + ", " + show(now) + ")",
                     [&] { return tx_.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                              duration lease) override {
        return write("extend(" + as_code("ticket", tickets) + ", " + show(now) + ", " + show(lease) + ")",
                     [&] { return tx_.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) override {
        return write("nudge(" + show(wanted) + ", " + show(now) + ")", [&] { return tx_.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) override {
        return write("cancel(" + show(wanted) + ", " + show(error) + ", " + show(now) + ")",
                     [&] { return tx_.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) override {
        return write("purge(" + as_code(request) + ")", [&] { return tx_.purge(request); });
    }
    void commit() override {
        script_.add(name_ + ".commit();");
        is_over_ = true;
        answered([&] {
            tx_.commit();
            return 0;
        });
    }
    [[nodiscard]] std::unique_ptr<transaction_face> move_out() override {
        auto name = script_.next_transaction();
        script_.add("auto " + name + " = std::move(" + name_ + ");");
        is_over_ = true;
        return std::make_unique<scripted_transaction>(tx_.move_out(), std::move(name), script_);
    }

  private:
    template <class Call>
    std::invoke_result_t<Call&> answered(Call&& call) {
        try {
            return call();
        } catch (const error& e) {
            script_.answer("throws " + show(e.kind()) + (e.is_in_doubt() ? ", in doubt" : ""));
            throw;
        } catch (...) {
            script_.answer("throws");
            throw;
        }
    }
    template <class Call>
    std::invoke_result_t<Call&> write(const std::string& code, Call&& call) {
        script_.add("std::ignore = " + name_ + "." + code + ";");
        auto answer = answered(call);
        script_.answer(show(answer));
        return answer;
    }

    any_transaction tx_;
    std::string name_;
    script& script_;
    bool is_over_ = false;
};

class scripted_store final : public store_face {
  public:
    scripted_store(any_store store, std::string name, script& to)
        : store_(std::move(store)), name_(std::move(name)), script_(to) {
        script_.add("auto " + name_ + " = open();");
    }
    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return store_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return store_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return store_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return store_.next_due(queue);
    }
    [[nodiscard]] std::unique_ptr<transaction_face> begin() override {
        auto name = script_.next_transaction();
        script_.add("auto " + name + " = " + name_ + ".begin();");
        return std::make_unique<scripted_transaction>(store_.begin(), std::move(name), script_);
    }
    [[nodiscard]] vouch::capabilities capabilities() const override { return store_.capabilities(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) override { return store_.wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) override {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

  private:
    any_store store_;
    std::string name_;
    script& script_;
};

} // namespace detail

/// The same store, its calls written to `to`, which must outlive it.
[[nodiscard]] inline any_store write_down(any_store store, script& to) {
    return any_store(std::make_shared<detail::scripted_store>(std::move(store), to.next_store(), to));
}

} // namespace conformance
} // namespace v0
} // namespace vouch
