// SPDX-License-Identifier: MIT
// The style of the web page of a report: light, dark and for print.
#pragma once

#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

inline constexpr std::string_view html_style = R"(
:root { color-scheme: light dark; --text: #1b1f24; --soft: #59636e; --page: #ffffff; --box: #f4f6f8; --line: #d5dae0;
  --good: #1a7f37; --bad: #c62828; --part: #8a5a00; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ed; --soft: #9aa5b1; --page: #14181d; --box: #1e242b; --line: #37404a;
    --good: #4cc46a; --bad: #ff7b72; --part: #e0b050; --link: #79b8ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 75rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
a { color: var(--link); }
p { margin: .4rem 0; }
dl { display: grid; grid-template-columns: 9rem minmax(0, 1fr); gap: .15rem 1rem; margin: .8rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th { color: var(--soft); font-weight: 600; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
.layers th:not(:first-child), .layers td:not(:first-child) { text-align: right; }
.clauses td:first-child, .clauses td:nth-child(2) { white-space: nowrap; }
.why { color: var(--soft); }
.badge { border: 1px solid currentColor; border-radius: .3rem; padding: 0 .4rem; font-size: .8rem; font-weight: 600;
  white-space: nowrap; vertical-align: middle; color: var(--soft); }
h1 .badge { font-size: 1rem; }
.badge.pass, .badge.conformant { color: var(--good); }
.badge.fail, .badge.hangs, .badge.crashes, .badge.failing { color: var(--bad); }
.badge.untested, .badge.partial { color: var(--part); }
.hint { border-left: 3px solid var(--part); padding-left: .7rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
pre, code { font: 13px/1.45 ui-monospace, monospace; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.transcript { background: var(--box); border-radius: .3rem; padding: .7rem; overflow: auto; max-height: 40rem;
  white-space: pre; }
@media print {
  :root { color-scheme: light; --text: #000; --soft: #444; --page: #fff; --box: #fff; --line: #bbb; --good: #060;
    --bad: #a00; --part: #640; --link: #000; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  .transcript { max-height: none; white-space: pre-wrap; border: 1px solid var(--line); font-size: 8pt; }
  h2, h3 { break-after: avoid; } tr, summary { break-inside: avoid; } a { text-decoration: none; }
}
)";

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
