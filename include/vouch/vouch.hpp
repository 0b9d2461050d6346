// SPDX-License-Identifier: MIT
// Everything of vouch that needs no database: the contract, the policies, the outbox, the runner, and the memory store.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/contract/bytes.hpp>
#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/matches.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/memory.hpp>
#include <vouch/run/audit.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/bindings.hpp>
#include <vouch/outbox/codec.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/outbox/topic.hpp>
#include <vouch/outbox/tracking.hpp>
#include <vouch/outbox/trail.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/id_source.hpp>
#include <vouch/policy/retention.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/handler.hpp>
#include <vouch/run/handling.hpp>
#include <vouch/run/report.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/runner.hpp>
#include <vouch/run/settling.hpp>
