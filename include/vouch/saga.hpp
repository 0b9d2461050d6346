// SPDX-License-Identifier: MIT
// Sagas on any store: definitions, remote participants, inspection. `router.on(definition)` runs them.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/saga/builder.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/compensation.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/inspect.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/requeue.hpp>
#include <vouch/saga/route.hpp>
#include <vouch/saga/step_call.hpp>
#include <vouch/saga/step_results.hpp>
#include <vouch/vouch.hpp>
