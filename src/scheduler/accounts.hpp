// What a scheduler counts: any thread reads it, whoever drives changes it. Each part has a lock of its own, behind which no other
// lock is taken.
#pragma once

#include <tessera/scheduler/scheduler.hpp>
#include <tessera/unstable/scheduler/tenants.hpp>

#include "core/guarded.hpp"

namespace tessera::detail {

struct Accounts {
  explicit Accounts(const TokenPrices& prices) : tenants(prices) {}

  Guarded<SchedulerFigures> figures;  // but for `submitted`, `running`, `waiting`, which the inbox knows, and for the tenants
  // Whoever drives also reads a tenant of its requests without the lock: nobody else changes it.
  Guarded<Tenants> tenants;
};

}  // namespace tessera::detail
