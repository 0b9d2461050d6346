// SPDX-License-Identifier: MIT
// The operator's page for any store: `vouch::page::site` turns a request into a response. Bring your own HTTP server.
#pragma once

#include <vouch/version.hpp> // first: it says what the compiler lacks
#include <vouch/page/message.hpp>
#include <vouch/page/options.hpp>
#include <vouch/page/site.hpp>
