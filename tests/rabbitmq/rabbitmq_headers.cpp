// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "property.hpp"
#include "server.hpp"

using namespace rabbitmq_test;
namespace detail = vouch::rabbitmq::detail;

namespace {

/// The message as it arrives: through the encoding of AMQP, with the fields in another order.
[[nodiscard]] vouch::message carried(const vouch::message& m, bool& is_readable) {
    detail::written_headers written(m, detail::frame_size_max);
    auto table = written.table();
    std::vector<char> wire(512 * 1024);
    const amqp_bytes_t buffer{wire.size(), wire.data()};
    std::size_t size = 0;
    REQUIRE(amqp_encode_table(buffer, &table, &size) == AMQP_STATUS_OK);
    REQUIRE(size < detail::frame_size_max - 1024);
    amqp_pool_t pool{};
    init_amqp_pool(&pool, 4096);
    amqp_table_t arrived{};
    size = 0;
    REQUIRE(amqp_decode_table(buffer, &pool, &arrived, &size) == AMQP_STATUS_OK);
    std::reverse(arrived.entries, arrived.entries + arrived.num_entries);
    detail::read_headers read(arrived);
    empty_amqp_pool(&pool);
    vouch::message out;
    out.id = m.id;
    out.topic = m.topic;
    out.payload = std::string(written.spilled()) + m.payload;
    is_readable = read.into(out);
    return out;
}

[[nodiscard]] bool is_carried(const vouch::message& m) {
    bool is_readable = false;
    return carried(m, is_readable) == m && is_readable;
}

} // namespace

TEST_CASE("rabbitmq: headers with any names and values, repeated or not, arrive as they were") {
    check_property("headers are carried", [] {
        const auto name = rc::gen::oneOf(
            rc::gen::element<std::string>("a", "b", "vouch-", "vouch-key", "vouch-order", "vouch-spilled", "CC", "BCC",
                                          "x-death", "x-delivery-count", "x-first-death-queue", "", "A", "traceparent"),
            rc::gen::map(rc::gen::inRange(250, 300),
                         [](int size) { return std::string(static_cast<std::size_t>(size), 'n'); }),
            rc::gen::arbitrary<std::string>());
        vouch::message m = message("m");
        m.headers = *rc::gen::container<vouch::header_list>(rc::gen::pair(name, rc::gen::arbitrary<std::string>()));
        m.key = *rc::gen::element<std::string>("", "key");
        RC_ASSERT(is_carried(m));
    });
}

TEST_CASE("rabbitmq: the largest headers that a store accepts are carried beside the payload") {
    auto m = message("m", "t", "payload");
    m.headers.assign(64, {std::string(255, 'n'), std::string(4096, 'v')});
    m.trail.assign(32, vouch::id{.high = 1, .low = 2});
    m.key = std::string(255, 'k');
    CHECK(is_carried(m));
    m.payload.clear();
    CHECK(is_carried(m));
    detail::written_headers written(m, detail::frame_size_max);
    CHECK(written.table().num_entries == 1);
    CHECK(written.spilled().size() > 64 * 4096);
}

TEST_CASE("rabbitmq: ordinary headers are plain fields, which other programs can read") {
    auto m = message("m");
    m.headers = {{"content", "json"}, {"traceparent", "00-1"}};
    m.lane = "l";
    detail::written_headers written(m, detail::frame_size_max);
    const auto table = written.table();
    std::string all;
    for (int i = 0; i < table.num_entries; ++i) {
        all += std::string(detail::text_of(table.entries[i].key)) + '=' +
               std::string(detail::text_of(table.entries[i].value.value.bytes)) + ' ';
    }
    CHECK(all == "vouch-lane=l content=json traceparent=00-1 ");
}

TEST_CASE("rabbitmq: what was spilled and is damaged is unreadable, and the payload stays") {
    for (const auto* size : {"", "-1", "x", "1000", "5", "99999999999999999999999"}) {
        CAPTURE(size);
        auto field = detail::text_field(detail::spilled_field, size);
        detail::read_headers read(amqp_table_t{1, &field});
        auto m = message("m", "t", "payload");
        CHECK_FALSE(read.into(m));
        CHECK(m.payload == "payload");
    }
}
