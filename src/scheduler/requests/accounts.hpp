// The figures and the tenants of a scheduler. Any thread may read them; the driving thread changes them. Each has its own lock, and while
// one of the two is held no other lock is taken.
#pragma once

#include <tessera/scheduler/scheduler.hpp>
#include <tessera/unstable/scheduler/tenants.hpp>

#include "core/guarded.hpp"

namespace tessera::detail {

struct Accounts {
  explicit Accounts(const TokenPrices& prices) : tenants(prices) {}

  // `submitted`, `running` and `waiting` are not set here, because the inbox counts them; nor are the tenants.
  Guarded<SchedulerFigures> figures;
  // The driving thread also reads the tenant of a request without the lock, because no other thread changes a tenant.
  Guarded<Tenants> tenants;
};

}  // namespace tessera::detail
