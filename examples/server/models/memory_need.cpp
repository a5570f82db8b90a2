#include "models/memory_need.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "failure.hpp"
#include "models/model_card.hpp"
#include "system/memory.hpp"

namespace server {

namespace {

// Returns about how many bytes a running request takes besides keys and values: logits, a sampler's lists of the vocabulary, and tokens.
std::uint64_t request_bytes(const tessera::ModelSource& source, const tessera::Plan& plan) {
  constexpr std::uint64_t kEachLogit = 20, kEachToken = 16;
  const auto* table = source.find_tensor("token_embd.weight");
  if (!writes_text(source.settings()) || table == nullptr) return 0;  // encoders have no logits, and read texts in the planned work memory
  return kEachLogit * table->dims[1] + kEachToken * plan.context;
}

// Returns how many full contexts the server may have at once: one for each running request, and one more for prompts to score and texts to
// embed, which are computed between the steps of running requests.
std::uint64_t most_contexts(std::uint32_t max_running) { return std::uint64_t{max_running} + 1; }

}  // namespace

MemoryNeed need_of(const tessera::ModelSource& source, tessera::EngineOptions options, std::uint32_t max_running) {
  const std::uint64_t asked = options.kv_budget;
  options.kv_budget = 0;
  const std::uint64_t full = value(tessera::Engine::plan(source, options)).kv;  // bytes of one full context
  MemoryNeed need{.least_kv = full + full / 4, .wanted_kv = full * most_contexts(max_running)};
  if (!writes_text(source.settings())) need.wanted_kv = need.least_kv;  // the server embeds the texts of one request at a time
  need.kv = asked != 0 ? asked : need.least_kv;
  options.kv_budget = need.kv;
  const tessera::Plan plan = value(tessera::Engine::plan(source, options));
  need.fixed = plan.peak - std::min(plan.peak, plan.kv_limit) + request_bytes(source, plan) * (max_running - 1);
  if (asked != 0) need.least_kv = need.wanted_kv = asked;
  return need;
}

void share_kv(std::span<MemoryNeed> needs, std::uint64_t memory) {
  std::uint64_t fixed = 0, sharers = 0;
  for (const MemoryNeed& need : needs) {
    fixed += need.fixed;
    sharers += need.wanted_kv > 0 ? 1 : 0;
  }
  const std::uint64_t left = memory > fixed ? memory - fixed : 0;
  const std::uint64_t share = std::max(left / std::max<std::uint64_t>(sharers, 1), memory / 8);
  for (MemoryNeed& need : needs) need.kv = std::max(std::min(need.wanted_kv, share), need.least_kv);
}

std::uint64_t kv_budget_alone(const tessera::ModelSource& source, const tessera::EngineOptions& options, std::uint32_t max_running) {
  const tessera::Plan plan = value(tessera::Engine::plan(source, options));
  const std::uint64_t wanted = std::max(plan.kv, std::uint64_t{1}) * most_contexts(max_running);
  const std::uint64_t left = available_memory() / 2, weights = std::min(plan.weights, left);
  return std::max(std::min(wanted, left - weights / 2), plan.kv + plan.kv / 4);
}

std::string in_units(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  return value < 1e9 ? fmt::format("{:.1f} MB", value / 1e6) : fmt::format("{:.2f} GB", value / 1e9);
}

}  // namespace server
