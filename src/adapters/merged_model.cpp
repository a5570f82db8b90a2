#include <tessera/unstable/adapters/merged_model.hpp>

#include "adapters/merged_source.hpp"
#include "core/guard.hpp"

namespace tessera {

Result<std::shared_ptr<const ModelSource>> merged_model(std::shared_ptr<const ModelSource> model, std::span<const MergedAdapter> adapters,
                                                        const std::stop_token& stop) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const ModelSource>> {
    if (adapters.empty()) return std::move(model);
    return detail::MergedSource::make(std::move(model), adapters, stop);
  });
}

}  // namespace tessera
