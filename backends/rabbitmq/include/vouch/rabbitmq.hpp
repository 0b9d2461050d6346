// SPDX-License-Identifier: MIT
// RabbitMQ: a publisher with confirmations, a consumer, and the exchanges and queues they need as data. Requires rabbitmq-c
// 0.11 or newer and RabbitMQ 3.10 or newer.
#pragma once

#include <vouch/version.hpp>              // first: it says what the compiler lacks
#include <vouch/rabbitmq/consumer.hpp>    // IWYU pragma: export
#include <vouch/rabbitmq/definitions.hpp> // IWYU pragma: export
#include <vouch/rabbitmq/options.hpp>     // IWYU pragma: export
#include <vouch/rabbitmq/provision.hpp>   // IWYU pragma: export
#include <vouch/rabbitmq/publisher.hpp>   // IWYU pragma: export
#include <vouch/rabbitmq/topology.hpp>    // IWYU pragma: export
