// SPDX-License-Identifier: MIT
// Entries as bytes: every field is restored, the format does not change, and other bytes are refused.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "support.hpp"

namespace contract_bytes_test {

using namespace support;
using vouch::entry;

namespace {

/// Fills a field with an arbitrary value.
struct anything {
    void operator()(std::string_view, std::string& f) const { f = *rc::gen::arbitrary<std::string>(); }
    void operator()(std::string_view, bool& f) const { f = *rc::gen::arbitrary<bool>(); }
    void operator()(std::string_view, std::uint32_t& f) const { f = *rc::gen::arbitrary<std::uint32_t>(); }
    void operator()(std::string_view, std::uint64_t& f) const { f = *rc::gen::arbitrary<std::uint64_t>(); }
    void operator()(std::string_view, vouch::state& f) const {
        f = *rc::gen::elementOf(std::vector(vouch::all_states.begin(), vouch::all_states.end()));
    }
    void operator()(std::string_view, vouch::time_point& f) const {
        f = vouch::time_point(vouch::duration(*rc::gen::arbitrary<std::int64_t>()));
    }
    void operator()(std::string_view, vouch::id& f) const {
        f = {*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()};
    }
    template <class A, class B>
    void operator()(std::string_view name, std::pair<A, B>& f) const {
        (*this)(name, f.first);
        (*this)(name, f.second);
    }
    template <class T>
    void operator()(std::string_view name, std::optional<T>& f) const {
        if (*rc::gen::arbitrary<bool>()) {
            (*this)(name, f.emplace());
        }
    }
    template <class T>
    void operator()(std::string_view name, std::vector<T>& f) const {
        f.resize(*rc::gen::inRange<std::size_t>(0, 4));
        for (auto& item : f) {
            (*this)(name, item);
        }
    }
};

entry any_entry() {
    entry e;
    for_each_field(anything{}, e);
    return e;
}

bool is_corrupt(std::string_view bytes) {
    const auto before = bytes;
    try {
        std::ignore = vouch::take_entry(bytes);
    } catch (const vouch::error& e) {
        return e.kind() == vouch::error_kind::corrupt && bytes == before;
    }
    return false;
}

} // namespace

TEST_CASE("bytes: every field is restored, and entries can be read one after another") {
    check_property("take_entry is the inverse of to_bytes", [] {
        const auto first = any_entry(), second = any_entry();
        const auto both = to_bytes(first) + to_bytes(second);
        std::string_view left = both;
        RC_ASSERT(vouch::take_entry(left) == first);
        RC_ASSERT(vouch::take_entry(left) == second);
        RC_ASSERT(left.empty());
    });
}

TEST_CASE("bytes: the smallest and largest values are restored") {
    entry e;
    e.id = {.high = std::numeric_limits<std::uint64_t>::max(), .low = 1};
    e.sequence = std::numeric_limits<std::uint64_t>::max();
    e.attempts = e.lapses = std::numeric_limits<std::uint32_t>::max();
    e.due_at = vouch::time_point::min();
    e.lease_until = vouch::time_point::max();
    e.result = std::string{};
    e.payload = std::string("\0\xff", 2);
    const auto bytes = to_bytes(e);
    std::string_view left = bytes;
    CHECK(vouch::take_entry(left) == e);
}

TEST_CASE("bytes: the format is fixed and the same on every machine") {
    entry e;
    e.id = {.high = 0x0102030405060708U, .low = 0x090a0b0c0d0e0f10U};
    e.queue = "q";
    e.trail = {id_of(1)};
    e.headers = {{"n", "v"}};
    e.sequence = 300;
    e.state = vouch::state::dead;
    e.lapses = 3;
    e.due_at = vouch::time_point(vouch::duration(1));
    e.result = "r";
    e.woken = true;
    const std::string nil(16, '\0');
    const auto expected = std::string("\x01") +                                              // format
                          "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10" // id
                          "\x01q" +                                                          // queue
                          std::string(5, '\0') +
                          nil + nil +            // topic to lane, parent, predecessor
                          std::string(2, '\0') + // expires_at, attempts_max
                          "\x01" + std::string(7, '\0') + '\x07' + std::string(7, '\0') +
                          "\x01"           // trail
                          "\x01\x01n\x01v" // headers
                          "\xac\x02"
                          "\x01" +
                          '\0' + // sequence, generation, created_at
                          "\x04" + '\0' + "\x03" + std::string(2, '\0') + "\x01" + '\0' + "\x01" +
                          '\0' +                              // state to last_error
                          "\x01\x01r" + std::string(4, '\0'); // result, progress, worker, updated_at, last_attempt_at
    CHECK(to_bytes(e) == expected);
}

TEST_CASE("bytes: truncated input, another format or a value out of range is corrupt, and no input is consumed") {
    auto e = vouch::born(draft_of(1), t0);
    e.trail = {id_of(1)};
    e.result = "result";
    const auto bytes = to_bytes(e);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK(is_corrupt(std::string_view(bytes).substr(0, size)));
    }
    auto later = bytes;
    later[0] = 2;
    CHECK(is_corrupt(later));
    CHECK(is_corrupt(std::string("\x01") + std::string(16, '\0') + std::string(9, '\xff') + '\x01'));  // 2^64 - 1 bytes
    CHECK(is_corrupt(std::string("\x01") + std::string(16, '\0') + std::string(10, '\xff') + '\x01')); // not a number
    e.state = static_cast<vouch::state>(5);
    CHECK(is_corrupt(to_bytes(e)));
}

TEST_CASE("bytes: any input is either an entry or corrupt") {
    check_property("damaged bytes are an entry or corrupt", [](const std::string& noise, std::size_t at) {
        auto bytes = to_bytes(vouch::born(draft_of(1), t0));
        bytes.replace(at % bytes.size(), noise.size(), noise);
        std::string_view left = bytes;
        try {
            std::ignore = vouch::take_entry(left);
        } catch (const vouch::error& e) {
            RC_ASSERT(e.kind() == vouch::error_kind::corrupt);
        }
    });
}

} // namespace contract_bytes_test
