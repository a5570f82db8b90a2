// What becomes of a request that is submitted, before it stands in line. By any thread.
#pragma once

#include "scheduler/active.hpp"
#include "scheduler/setup.hpp"

namespace tessera::detail {

// Errors: what the request asks for cannot be.
[[nodiscard]] Status check(const Setup& setup, const Request& request);
// Makes what the scheduler has of a request that has been checked: all but its id, its deadline and whom it wakes. May throw
// bad_alloc.
[[nodiscard]] Result<ActivePtr> make_active(const Setup& setup, Request request);
// Errors: the KV budget never has room for it.
[[nodiscard]] Status check_size(const Setup& setup, const PlannedRequest& planned);

}  // namespace tessera::detail
