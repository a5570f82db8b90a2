// Checks a submitted request and prepares it, before it is put into the inbox. Any thread.
#pragma once

#include "scheduler/requests/active.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// Checks that the engine and the scheduler can serve the request. Takes the request's session for a moment: invalid_state if a
// Generation or another thread uses it.
[[nodiscard]] Status check(const Setup& setup, const Request& request);
// Makes the Active of a request that check() has accepted, without its id, deadline and stop callback. May throw bad_alloc.
[[nodiscard]] Result<ActivePtr> make_active(const Setup& setup, Request request);
// Checks that the whole KV budget has room for the request. Error: invalid_argument.
[[nodiscard]] Status check_size(const Setup& setup, const PlannedRequest& planned);

}  // namespace tessera::detail
