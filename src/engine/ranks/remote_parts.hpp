// Reads and writes whole layers of keys, values and states in an engine's sessions, if ranks in other processes have parts of these layers.
// Reading collects the parts from all ranks; writing sends each rank its part.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/run/fair_queue.hpp"
#include "kv/other_parts.hpp"
#include "ranks/processes/remote_ranks.hpp"

namespace tessera::detail {

class RemoteParts final : public OtherParts {
 public:
  // `queue`: the engine's queue for the use of its ranks.
  RemoteParts(RemoteRanks& ranks, std::shared_ptr<const ModelDivision> division, FairQueue& queue) noexcept
      : ranks_(ranks), division_(std::move(division)), queue_(queue) {}

  Status read_layer(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::span<std::byte* const> pages) override;
  Status write_layer(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::span<std::byte* const> pages) override;
  Status read_state(const KvCache& cache, std::size_t layer, std::uint64_t page, std::uint64_t at, std::span<std::byte> out) override;
  Status write_state(const KvCache& cache, std::size_t layer, std::uint64_t page, std::uint64_t at, std::span<const std::byte> bytes) override;

 private:
  static constexpr std::uint64_t kMessageBytes = std::uint64_t{8} << 20;  // bytes of pages in one message, approximately

  // The place of a rank's bytes in a layer's pages of all heads.
  struct Place;

  // Cuts the pages into runs of consecutive pages, each of about the size of one message (kMessageBytes), and calls each(part, pages) for
  // each run. `part` describes the run, and `pages` are the pages of the run.
  using EachRun = std::function<Status(LayerPages& part, std::span<std::byte* const> pages)>;
  Status for_runs(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::span<std::byte* const> pages, const EachRun& each);
  [[nodiscard]] LayerPages describe(const KvCache& cache, std::size_t layer, std::uint64_t first_page, std::uint64_t end_page) const;
  [[nodiscard]] Place place_of(const KvCache& cache, std::size_t layer, std::uint32_t rank) const;

  RemoteRanks& ranks_;
  std::shared_ptr<const ModelDivision> division_;
  FairQueue& queue_;
};

}  // namespace tessera::detail
