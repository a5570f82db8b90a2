// A tenant's share of a scheduler: what its tokens are counted at, and what it has been served.
#pragma once

#include <cstdint>

namespace tessera {

struct TokenPrices {
  double prompt = 1.0;  // of a computed token of a prompt
  double output = 2.0;  // of a drawn token
};

struct TenantFigures {
  double weight = 1.0;         // a tenant of weight 2 may have twice the service of one of weight 1
  double service = 0.0;        // tokens times their prices over the weight (fair_by_tenant)
  std::uint64_t requests = 0;  // requests that have been submitted and have not ended
};

}  // namespace tessera
