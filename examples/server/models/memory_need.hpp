// Computes the memory that each model takes when it is loaded, before any model is loaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/engine.hpp>

namespace server {

// The memory of one model, in bytes. If EngineOptions::kv_budget is given, least_kv, wanted_kv and kv are this budget.
struct MemoryNeed {
  std::uint64_t fixed = 0;      // everything except keys and values: weights, work memory, tokenizer, the state of requests
  std::uint64_t least_kv = 0;   // keys and values of one and a quarter full contexts
  std::uint64_t wanted_kv = 0;  // keys and values of --max-running + 1 full contexts; for an encoder least_kv
  std::uint64_t kv = 0;         // the chosen KV budget

  [[nodiscard]] std::uint64_t bytes() const noexcept { return fixed + kv; }
};

// Returns the memory that a model takes, with a KV budget of `options.kv_budget` bytes, or of `least_kv` if kv_budget is 0. Throws Failure.
[[nodiscard]] MemoryNeed need_of(const tessera::ModelSource& source, tessera::EngineOptions options, std::uint32_t max_running);
// Chooses the KV budgets (`kv`) of models that share `memory`. A model gets its `wanted_kv`, but at most the larger of two amounts: an equal
// share of the memory that the `fixed` bytes of all models leave free, or an eighth of `memory`. Exception: each model gets at least its
// `least_kv`.
void share_kv(std::span<MemoryNeed> needs, std::uint64_t memory);

// Returns the KV budget of a server with one model and without a limit of memory: the bytes of max_running + 1 full contexts, but at most
// half of the memory that the weights leave free. Exception: at least one and a quarter full contexts. Throws Failure.
[[nodiscard]] std::uint64_t kv_budget_alone(const tessera::ModelSource& source, const tessera::EngineOptions& options, std::uint32_t max_running);

// Returns "98.1 MB".
[[nodiscard]] std::string in_units(std::uint64_t bytes);

}  // namespace server
