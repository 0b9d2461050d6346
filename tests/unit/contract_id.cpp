// SPDX-License-Identifier: MIT
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <vouch/vouch.hpp>

#include "property.hpp"
#include "support.hpp"

namespace contract_id_test {

using vouch::derive;
using vouch::id;

namespace {

constexpr id sample{.high = 0x0123456789abcdefU, .low = 0xfedcba9876543210U};
constexpr std::string_view sample_text = "01234567-89ab-cdef-fedc-ba9876543210";

/// Two ids that often share their first half, so that the second half decides.
struct two {
    id a, b;
};
two pair_of(std::uint64_t w, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    return {{.high = w, .low = x}, {.high = z % 2 == 0 ? w : y, .low = z}};
}

} // namespace

TEST_CASE("id: the text is a UUID in lower case") {
    CHECK(to_string(sample) == sample_text);
    CHECK(to_string(id{}) == "00000000-0000-0000-0000-000000000000");
    CHECK(to_string(id{.high = ~std::uint64_t{0}, .low = ~std::uint64_t{0}}) == "ffffffff-ffff-ffff-ffff-ffffffffffff");
    CHECK(to_string(id{.high = 0, .low = 1}) == "00000000-0000-0000-0000-000000000001");
}

TEST_CASE("id: text is parsed in either case, also at compile time") {
    static_assert(id::parse(sample_text) == sample);
    CHECK(id::parse("01234567-89AB-CDEF-FEDC-BA9876543210") == sample);
    CHECK(id::parse("01234567-89aB-CdEf-FeDc-bA9876543210") == sample);
    CHECK(id::parse("00000000-0000-0000-0000-000000000000") == id{});
}

TEST_CASE("id: only the nil id is nil") {
    CHECK(id{}.is_nil());
    CHECK(!id{.high = 1, .low = 0}.is_nil());
    CHECK(!id{.high = 0, .low = 1}.is_nil());
}

TEST_CASE("id: the most significant byte is first") {
    const auto bytes = sample.bytes();
    const std::array<std::uint8_t, 16> expected{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                                0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};
    CHECK(bytes == expected);
    CHECK(id::from_bytes(expected) == sample);
}

TEST_CASE("id: text and bytes convert back to the same id") {
    check_property("round trip", [](std::uint64_t high, std::uint64_t low) {
        const id value{.high = high, .low = low};
        return id::parse(to_string(value)) == value && id::from_bytes(value.bytes()) == value;
    });
}

TEST_CASE("id: ids, their bytes and their text sort in the same order") {
    check_property("same order", [](std::uint64_t w, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
        const auto [a, b] = pair_of(w, x, y, z);
        const auto order = a <=> b;
        const auto text = to_string(a).compare(to_string(b));
        return order == (a.bytes() <=> b.bytes()) && (order < 0) == (text < 0) && (order == 0) == (text == 0);
    });
}

TEST_CASE("id: text of any other length is refused") {
    constexpr std::string_view longer = "01234567-89ab-cdef-fedc-ba98765432100";
    for (std::size_t length = 0; length <= longer.size(); ++length) {
        CAPTURE(length);
        CHECK(id::parse(longer.substr(0, length)).has_value() == (length == 36));
    }
    CHECK(!id::parse("0123456789abcdeffedcba9876543210"));
    CHECK(!id::parse("{01234567-89ab-cdef-fedc-ba9876543210}"));
    CHECK(!id::parse(" 1234567-89ab-cdef-fedc-ba9876543210"));
}

TEST_CASE("id: every byte at every position of the text is checked") {
    const std::string_view digits = "0123456789abcdefABCDEF";
    for (std::size_t position = 0; position < 36; ++position) {
        const bool is_dash = position == 8 || position == 13 || position == 18 || position == 23;
        for (int byte = 0; byte < 256; ++byte) {
            std::string text(sample_text);
            text[position] = static_cast<char>(byte);
            const bool good = is_dash ? text[position] == '-' : digits.find(text[position]) != std::string_view::npos;
            if (id::parse(text).has_value() != good) {
                CAPTURE(position, byte);
                CHECK(id::parse(text).has_value() == good);
            }
        }
    }
}

TEST_CASE("id: similar ids have well spread hashes") {
    CHECK(std::hash<id>{}(sample) == std::hash<id>{}(id::parse(sample_text).value()));
    std::unordered_set<std::size_t> hashes;
    std::vector<int> buckets(256);
    for (std::uint64_t n = 0; n < 8192; ++n) {
        const auto hash = std::hash<id>{}(n % 2 == 0 ? id{.high = n, .low = 5} : id{.high = 5, .low = n});
        hashes.insert(hash);
        ++buckets[hash % buckets.size()];
    }
    CHECK(hashes.size() == 8192);
    for (const auto count : buckets) {
        CHECK(count > 8); // 32 expected
        CHECK(count < 80);
    }
}

TEST_CASE("derive: the same base and label give the same id in every version of vouch") {
    // Derived ids are stored, and repeated work must find them after an upgrade: this value never changes.
    static_assert(derive(sample, "step.1") == id::parse("01234567-89ab-8b75-9e57-e142ba8bfc62"));
    CHECK(derive(sample, "step.1") == derive(sample, std::string("step.1")));
}

TEST_CASE("derive: the id keeps the base's time and is a UUID of version 8") {
    check_property(
        "leading 48 bits, version, variant", [](std::uint64_t high, std::uint64_t low, const std::string& label) {
            const auto derived = derive({.high = high, .low = low}, label);
            return derived.high >> 16 == high >> 16 && ((derived.high >> 12) & 0xfU) == 8 && derived.low >> 62 == 2;
        });
}

TEST_CASE("derive: different labels and different bases give different ids") {
    std::unordered_set<id> seen{sample};
    std::size_t made = 1;
    const auto add = [&](const id& value) {
        seen.insert(value);
        ++made;
    };
    for (int n = 0; n < 2000; ++n) {
        add(derive(sample, std::to_string(n)));
        add(derive({.high = sample.high, .low = static_cast<std::uint64_t>(n)}, "label"));
        add(derive({.high = sample.high ^ static_cast<std::uint64_t>(n + 1), .low = sample.low}, "label"));
    }
    for (const std::string label : {"", "a", "aa", "ab", "ba", "label/0"}) {
        add(derive(sample, label));
        add(derive(sample, label + '\0'));
    }
    add(derive(derive(sample, "a"), "b"));
    CHECK(seen.size() == made);
}

} // namespace contract_id_test
