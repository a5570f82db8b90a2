// The adapters of a rank that serves an engine in another process: the changes of the rank's own weights.
#pragma once

#include <map>

#include "engine/adapters/adapter_places.hpp"
#include "ranks/processes/own_pages.hpp"
#include "ranks/processes/rank_adapters.hpp"

namespace tessera::detail {

class ServedAdapters final : public RankAdapters {
 public:
  // `source` is read for adapters with lengths (DoRA). `room` counts the adapters' bytes within the limit for the rank's pages.
  ServedAdapters(AdapterPlaces places, const backend::Backend& backend, const ModelSource& source, OwnPages& room)
      : places_(std::move(places)), backend_(backend), source_(source), room_(room) {}

  Status take(std::span<const std::byte> message) override;
  void forget(const Hash128& content) noexcept override;
  [[nodiscard]] const backend::AdapterWeights* find(const Hash128& content) const noexcept override;

 private:
  struct Served {
    std::uint64_t bytes = 0;
    backend::AdapterWeights weights;
  };
  [[nodiscard]] Status check(const AdapterTensor& change) const;

  AdapterPlaces places_;
  const backend::Backend& backend_;
  const ModelSource& source_;
  OwnPages& room_;
  std::map<Hash128, Served, ByContent> adapters_;
};

}  // namespace tessera::detail
