// SPDX-License-Identifier: MIT
// Everything of vouch that needs no database: the contract, the policies, the outbox, the runner, and the memory store.
#pragma once

#include <vouch/contract/time.hpp>
#include <vouch/version.hpp>
