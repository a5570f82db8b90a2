#include "engine/load/load_parts.hpp"

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

Status load_parts(const ModelSource& source, const Blueprint& blueprint, const EngineOptions& options,
                  std::vector<std::unique_ptr<RankPart>>& parts) {
  const ModelDivision& division = *blueprint.division;
  const backend::WorkspaceShape workspace = workspace_of(blueprint.spec, blueprint.step_rows, options.kv.budget, blueprint.plan.context);
  // Rank 0 reads the whole file, for its hash; the others read their own parts.
  std::uint64_t total = file_bytes(blueprint.bindings), before = 0;
  for (std::uint32_t rank = 1; rank < parts.size(); ++rank) total += file_bytes(division.bindings_of(rank, blueprint.bindings));
  for (std::uint32_t rank = 0; rank < parts.size(); ++rank) {
    RankPart& part = *parts[rank];
    const std::vector<Binding> bindings = division.bindings_of(rank, blueprint.bindings);
    const WeightBytes bytes = weight_bytes(bindings, source, blueprint.spec, *part.backend);
    TESSERA_TRY_STATUS(part.backend->reserve_weights(bytes.packed, bytes.staging));
    part.model.spec = division.spec_of(rank);
    part.model.mixers = division.mixers_of(rank);
    LoadProgress progress;
    if (options.progress) {
      progress = [&](std::uint64_t done, std::uint64_t) { return options.progress(std::min(before + done, total), total); };
    }
    TESSERA_TRY_STATUS(
        load_weights(part.model, source, bindings, *part.backend, progress, options.stop, rank == 0 ? ReadBytes::all : ReadBytes::own));
    before += rank == 0 ? file_bytes(blueprint.bindings) : file_bytes(bindings);
    part.model.attentions = attentions_of(part.model);
    division.tell(*part.backend, part.model, bindings);
    TESSERA_TRY_STATUS(part.backend->reserve_workspace(workspace));
  }
  return {};
}

Model whole_model(const RankPart& first, const ModelSpec& spec) {
  Model whole = first.model;
  whole.spec = spec;
  whole.weights = {};
  whole.layer_weights.clear();
  whole.mixers.clear();
  whole.attentions.clear();
  return whole;
}

}  // namespace tessera::detail
