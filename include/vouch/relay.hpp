// SPDX-License-Identifier: MIT
// From one store to another through a broker: the relay, the intake, and the concepts that clients of brokers model.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/relay/consumer.hpp>
#include <vouch/relay/intake.hpp>
#include <vouch/relay/intake_options.hpp>
#include <vouch/relay/message.hpp>
#include <vouch/relay/properties.hpp>
#include <vouch/relay/publisher.hpp>
#include <vouch/relay/relay.hpp>
#include <vouch/vouch.hpp>
