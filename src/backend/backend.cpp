// Fused operations, said in plain ones.
#include <tessera/backend/backend.hpp>

#include "support/guard.hpp"

namespace tessera::backend {

Status Backend::linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) {
  TESSERA_TRY_STATUS(linear(weight, in, out));
  return bias != nullptr ? add_bias(*bias, out) : Status();
}

Status Backend::linear_residual(const Matrix& weight, const Vector* bias, Act in, Act x) {
  TESSERA_TRY_STATUS(linear_bias(weight, bias, in, Act::linear));
  return add(Act::linear, x);
}

}  // namespace tessera::backend
