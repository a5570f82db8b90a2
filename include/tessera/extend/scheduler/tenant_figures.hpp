// Prices of tokens, and the service that each tenant (user) of a scheduler has received, for fair_by_tenant().
#pragma once

#include <cstdint>

namespace tessera {

struct TokenPrices {
  double prompt = 1.0;  // price of a computed token of a prompt
  double output = 2.0;  // price of a drawn token
};

struct TenantFigures {
  double weight = 1.0;         // a tenant of weight 2 gets twice as many tokens as a tenant of weight 1
  double service = 0.0;        // (sum of tokens times their prices) / weight; the tenant with the least service is served first
  std::uint64_t requests = 0;  // requests that have been submitted and have not ended
};

}  // namespace tessera
