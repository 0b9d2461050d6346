// SPDX-License-Identifier: MIT
// expect-ok
// The control: a complete store compiles.
#include "whole.hpp"

static_assert(vouch::explain_writer<whole::writer>());
static_assert(vouch::explain_store<whole::store>());
static_assert(vouch::store<whole::store>);
static_assert(vouch::explain_store<vouch::memory::store>());
static_assert(vouch::explain_writer<vouch::memory::transaction>());
