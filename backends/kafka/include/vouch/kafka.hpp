// SPDX-License-Identifier: MIT
// Kafka: a publisher for relays and a consumer for intakes, on librdkafka 2.0 or newer.
#pragma once

#include <vouch/version.hpp>          // first: it says what the compiler lacks
#include <vouch/kafka/answer.hpp>     // IWYU pragma: export
#include <vouch/kafka/consumer.hpp>   // IWYU pragma: export
#include <vouch/kafka/options.hpp>    // IWYU pragma: export
#include <vouch/kafka/publisher.hpp>  // IWYU pragma: export
#include <vouch/kafka/topic_map.hpp>  // IWYU pragma: export
#include <vouch/kafka/topic_name.hpp> // IWYU pragma: export
#include <vouch/kafka/topics.hpp>     // IWYU pragma: export
