#include "engine/load/load_parts.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "engine/session/token_budget.hpp"
#include "model/forward.hpp"
#include "model/load/weight_rows.hpp"

namespace tessera::detail {

namespace {

std::uint64_t file_bytes(std::span<const Binding> bindings) {
  std::uint64_t bytes = 0;
  for (const Binding& binding : bindings) bytes += binding.own.here ? binding.shape.rows() * file_row_bytes(binding.shape) : 0;
  return bytes;
}

}  // namespace

Status load_part(const ModelSource& source, const Blueprint& blueprint, const EngineOptions& options, std::uint32_t rank,
                 RankBackend& backend, Model& model, ReadBytes bytes, const LoadProgress& progress) {
  const ModelDivision& division = *blueprint.division;
  const std::vector<Binding> bindings = division.bindings_of(rank, blueprint.bindings);
  const WeightBytes weights = weight_bytes(bindings, source, blueprint.spec, backend);
  TESSERA_TRY_STATUS(backend.reserve_weights(weights.packed, weights.staging));
  model.spec = division.spec_of(rank);
  model.places = division.places_of(rank);
  TESSERA_TRY_STATUS(load_weights(model, source, bindings, backend, progress, options.stop, bytes));
  model.attentions = attentions_of(model);
  division.tell(backend, model, bindings);
  return backend.reserve_workspace(workspace_of(blueprint.spec, blueprint.step_rows, options.kv.budget, blueprint.plan.context));
}

Status load_parts(const ModelSource& source, const Blueprint& blueprint, const EngineOptions& options,
                  std::vector<std::unique_ptr<RankPart>>& parts) {
  // Rank 0 reads the whole file, to compute its hash; every other rank reads its own part.
  const auto bytes_of = [&](std::uint32_t rank) {
    return rank == 0 ? file_bytes(blueprint.bindings) : file_bytes(blueprint.division->bindings_of(rank, blueprint.bindings));
  };
  std::uint64_t total = 0, before = 0;
  for (std::uint32_t rank = 0; rank < parts.size(); ++rank) total += bytes_of(rank);
  for (std::uint32_t rank = 0; rank < parts.size(); ++rank) {
    LoadProgress progress;
    if (options.progress) {
      progress = [&](std::uint64_t done, std::uint64_t) { return options.progress(std::min(before + done, total), total); };
    }
    RankPart& part = *parts[rank];
    TESSERA_TRY_STATUS(load_part(source, blueprint, options, rank, *part.backend, part.model, rank == 0 ? ReadBytes::all : ReadBytes::own, progress));
    before += bytes_of(rank);
  }
  return {};
}

Model whole_model(const Model& first, const ModelSpec& spec) {
  Model whole = first;
  whole.spec = spec;
  whole.weights = {};
  whole.layer_weights.clear();
  whole.places.clear();
  whole.attentions.clear();
  return whole;
}

}  // namespace tessera::detail
