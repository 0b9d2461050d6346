// SPDX-License-Identifier: MIT
// A memory store whose process may crash before or after any commit. From then on every call throws, so whatever the
// crashed code still does has no effect. A new handle on the same memory store is the process restarted. All calls and
// their answers are hashed, so that two runs can be compared.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/store_adaptor.hpp>
#include <vouch/memory.hpp>
#include <vouch/testing/saga/detail/fault_plan.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

/// What the handles of one process share.
struct simulated_process {
    fault_plan& faults;
    bool has_crashed = false;
    std::uint64_t calls = 14695981039346656037U; ///< a hash of all calls and their answers

    /// Throws if the process has crashed.
    void record(std::string_view call, std::uint64_t answer = 0) {
        if (has_crashed) {
            throw error(error_kind::io, "simulated process: it has crashed");
        }
        mix_in(call, answer);
    }
    void crash() noexcept {
        mix_in("crash", 0);
        has_crashed = true;
    }

  private:
    void mix_in(std::string_view call, std::uint64_t answer) noexcept {
        for (const char c : call) {
            calls = (calls ^ static_cast<unsigned char>(c)) * 1099511628211U;
        }
        calls = (calls ^ (answer + 1)) * 1099511628211U;
    }
};

/// Records every call whose arguments do not matter.
struct call_recorder {
    std::shared_ptr<simulated_process> process;

    template <class Call>
    auto operator()(store_operation what, const Call& call) const {
        auto answer = call();
        process->record(name_of(what), hash_of(what, answer));
        return answer;
    }

  private:
    template <class Answer>
    [[nodiscard]] static std::uint64_t hash_of(store_operation what, const Answer& answer) noexcept {
        if constexpr (std::same_as<Answer, std::optional<entry>>) {
            return answer ? 2U + static_cast<unsigned>(answer->state) : 1U;
        } else if constexpr (std::same_as<Answer, verdict>) {
            return what == store_operation::cancel ? static_cast<unsigned>(answer) : 0U;
        } else {
            return 0;
        }
    }
};

class crashing_transaction : public transaction_adaptor<memory::transaction, call_recorder> {
  public:
    crashing_transaction(memory::transaction tx, const std::shared_ptr<const call_recorder>& recorder)
        : transaction_adaptor(std::move(tx), recorder), process_(recorder->process) {}

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        for (const auto& d : drafts) {
            process_->record("enqueue " + d.queue + ' ' + d.topic);
        }
        return inner().enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& r) {
        auto claimed = inner().claim(r);
        process_->record("claim " + r.queue, claimed.empty() ? 0U : claimed.front().attempts);
        return claimed;
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        auto settled = inner().settle(settles, now);
        for (std::size_t i = 0; i < settled.size(); ++i) {
            process_->record("settle", settles[i].outcome.index() * 4U + static_cast<unsigned>(settled[i].verdict));
        }
        return settled;
    }
    void commit() {
        enum : std::size_t { normal, crash_before, crash_after };
        process_->record("commit");
        const auto fault = process_->faults.choose("commit", {"", "crash before", "crash after"});
        if (fault != crash_before) {
            inner().commit();
        }
        if (fault != normal) {
            process_->crash();
            process_->record("commit"); // throws
        }
    }

  private:
    std::shared_ptr<simulated_process> process_;
};

class crashing_store : public store_adaptor<memory::store, call_recorder> {
  public:
    using transaction = crashing_transaction;

    /// `work` is a handle: all processes share its entries.
    crashing_store(memory::store work, std::shared_ptr<simulated_process> in)
        : store_adaptor(std::move(work), call_recorder{in}),
          recorder_(std::make_shared<const call_recorder>(call_recorder{std::move(in)})) {}

    [[nodiscard]] transaction begin() {
        recorder_->process->record("begin");
        return {inner().begin(), recorder_};
    }

  private:
    std::shared_ptr<const call_recorder> recorder_;
};

static_assert(store<crashing_store>);

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
