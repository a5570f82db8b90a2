// The figures and tenants of a scheduler. Any thread reads them, the driving thread changes them. Each of the two has its own lock;
// no other lock is taken while one of these is held.
#pragma once

#include <tessera/scheduler/scheduler.hpp>
#include <tessera/unstable/scheduler/tenants.hpp>

#include "core/guarded.hpp"

namespace tessera::detail {

struct Accounts {
  explicit Accounts(const TokenPrices& prices) : tenants(prices) {}

  Guarded<SchedulerFigures> figures;  // without `submitted`, `running` and `waiting`, which the inbox counts, and without tenants
  // The driving thread also reads the tenant of a request without the lock, because no other thread changes a tenant.
  Guarded<Tenants> tenants;
};

}  // namespace tessera::detail
