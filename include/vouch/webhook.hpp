// SPDX-License-Identifier: MIT
// Webhook deliveries as routes: `router.on(webhook)`.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/run/webhook.hpp>
#include <vouch/vouch.hpp>
