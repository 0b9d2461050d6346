// SPDX-License-Identifier: MIT
// Sagas on any store: definitions, the engine, remote participants, inspection, the inbox, webhook deliveries.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/saga/call.hpp>
#include <vouch/outbox/cancel.hpp>
#include <vouch/saga/claim.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/commanding.hpp>
#include <vouch/saga/compensation.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/outbox/inbox.hpp>
#include <vouch/saga/inspect.hpp>
#include <vouch/contract/saga_origin.hpp>
#include <vouch/contract/saga_progress.hpp>
#include <vouch/outbox/requeue.hpp>
#include <vouch/saga/results.hpp>
#include <vouch/saga/retreat.hpp>
#include <vouch/saga/rules.hpp>
#include <vouch/saga/route.hpp>
#include <vouch/run/webhook.hpp>
