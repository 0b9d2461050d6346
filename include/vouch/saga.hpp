// SPDX-License-Identifier: MIT
// Sagas on any store: definitions, the engine, remote participants, inspection, the inbox, webhook deliveries.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/saga/builder.hpp>
#include <vouch/saga/cancel.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/compensation.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/inbox.hpp>
#include <vouch/saga/inspect.hpp>
#include <vouch/saga/origin.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/requeue.hpp>
#include <vouch/saga/saga.hpp>
#include <vouch/saga/step_call.hpp>
#include <vouch/saga/step_results.hpp>
#include <vouch/saga/webhook.hpp>
