// SPDX-License-Identifier: MIT
// A consumer of any type, so that the clauses are compiled once. It holds a consumer that a function has returned, which
// need not be movable. Its destruction destroys that consumer.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/contract/time.hpp>
#include <vouch/relay/consumer.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

class any_consumer {
  public:
    /// Holds what `make` returns.
    template <class Make>
    [[nodiscard]] static any_consumer from(Make&& make) {
        static_assert(vouch::consumer<std::invoke_result_t<Make&>>,
                      "the fixture's consumer() returns what vouch/relay/consumer.hpp describes");
        return any_consumer(std::make_unique<holder<std::invoke_result_t<Make&>>>(make));
    }

    [[nodiscard]] std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) {
        return held_->receive(limit, at_most, stop);
    }
    void acknowledge(std::span<const received> some) { held_->acknowledge(some); }
    void give_back(std::span<const received> some) { held_->give_back(some); }
    void set_aside(std::span<const received> some) { held_->set_aside(some); }
    void cancel() { held_->cancel(); }

  private:
    struct any_holder {
        any_holder() = default;
        any_holder(const any_holder&) = delete;
        any_holder& operator=(const any_holder&) = delete;
        virtual ~any_holder() = default;
        virtual std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) = 0;
        virtual void acknowledge(std::span<const received> some) = 0;
        virtual void give_back(std::span<const received> some) = 0;
        virtual void set_aside(std::span<const received> some) = 0;
        virtual void cancel() = 0;
    };
    template <class Consumer>
    struct holder final : any_holder {
        template <class Make>
        explicit holder(Make& make) : held(make()) {}
        std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) override {
            return held.receive(limit, at_most, stop);
        }
        void acknowledge(std::span<const received> some) override { held.acknowledge(some); }
        void give_back(std::span<const received> some) override { held.give_back(some); }
        void set_aside(std::span<const received> some) override { held.set_aside(some); }
        void cancel() override { held.cancel(); }
        Consumer held;
    };

    explicit any_consumer(std::unique_ptr<any_holder> held) noexcept : held_(std::move(held)) {}

    std::unique_ptr<any_holder> held_;
};

static_assert(vouch::consumer<any_consumer>);

} // namespace conformance::broker
} // namespace v0
} // namespace vouch
