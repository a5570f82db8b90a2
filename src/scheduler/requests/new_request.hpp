// Checks a submitted request and prepares it for the inbox. Any thread may call these functions.
#pragma once

#include "scheduler/requests/active.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// Checks that the engine and the scheduler can serve the request. Locks the request's session briefly. Errors include: invalid_state, a
// Generation or another thread uses the session.
[[nodiscard]] Status check(const Setup& setup, const Request& request);
// Makes the Active for a request that check() has accepted. The caller must set its deadline and stop callback; Inbox::put() sets its id.
// May throw bad_alloc.
[[nodiscard]] Result<ActivePtr> make_active(const Setup& setup, Request request);
// Checks that the request fits into the KV budget if no other request runs. Error: invalid_argument.
[[nodiscard]] Status check_size(const Setup& setup, const PlannedRequest& planned);

}  // namespace tessera::detail
