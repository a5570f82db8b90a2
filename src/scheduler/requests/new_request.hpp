// Checks a submitted request and prepares it for the inbox. Any thread may call these functions.
#pragma once

#include "scheduler/requests/active.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// Checks that the engine and the scheduler can serve the request. Locks the request's session for a moment. Error, among others:
// invalid_state, a Generation or another thread uses the session.
[[nodiscard]] Status check(const Setup& setup, const Request& request);
// Makes the Active of a request that check() has accepted. Id, deadline and stop callback are not set yet. May throw bad_alloc.
[[nodiscard]] Result<ActivePtr> make_active(const Setup& setup, Request request);
// Checks that the request alone fits into the whole KV budget. Error: invalid_argument.
[[nodiscard]] Status check_size(const Setup& setup, const PlannedRequest& planned);

}  // namespace tessera::detail
