// SPDX-License-Identifier: MIT
// Sagas whose participants are in other services: the relay of commands, the participant, and the handler of replies.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/relay.hpp>
#include <vouch/relay/saga/channels.hpp>
#include <vouch/relay/saga/command_relay.hpp>
#include <vouch/relay/saga/participant.hpp>
#include <vouch/relay/saga/reply.hpp>
#include <vouch/relay/saga/reply_handler.hpp>
#include <vouch/saga.hpp>
