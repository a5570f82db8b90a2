// The figures and the tenants of a scheduler. Any thread may read them; the driving thread changes them. The figures have a lock, and the
// tenants have another. A thread that holds one of these two locks takes no other lock.
#pragma once

#include <tessera/scheduler/scheduler.hpp>
#include <tessera/unstable/scheduler/tenants.hpp>

#include "core/guarded.hpp"

namespace tessera::detail {

struct Accounts {
  explicit Accounts(const TokenPrices& prices) : tenants(prices) {}

  // The figures of all requests together. `submitted`, `running` and `waiting` stay 0 here, because the inbox counts these requests; the
  // tenants' figures are in `tenants`.
  Guarded<SchedulerFigures> figures;
  // The driving thread reads the tenant of a request without locking, because no other thread changes tenants.
  Guarded<Tenants> tenants;
};

}  // namespace tessera::detail
