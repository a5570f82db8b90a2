#include <tessera/unstable/model/known_architectures.hpp>

#include "model/architectures.hpp"

namespace tessera {

std::optional<std::uint32_t> full_attention_period(std::string_view architecture) noexcept {
  const Architecture* table = arch::find(architecture);
  if (table == nullptr) return std::nullopt;
  return table->windows.period;
}

}  // namespace tessera
