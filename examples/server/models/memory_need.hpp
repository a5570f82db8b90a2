// The memory that each model takes when it is loaded, known before any is loaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/engine.hpp>

namespace server {

// The numbers of one model. All are bytes.
struct MemoryNeed {
  std::uint64_t fixed = 0;      // weights, work memory, tokenizer and the state of requests: all but keys and values
  std::uint64_t least_kv = 0;   // keys and values of one and a quarter full contexts
  std::uint64_t wanted_kv = 0;  // keys and values of --max-running + 1 full contexts; of an encoder, least_kv
  std::uint64_t kv = 0;         // the chosen KV budget

  [[nodiscard]] std::uint64_t bytes() const noexcept { return fixed + kv; }
};

// Returns what a model takes, with a KV budget of `options.kv_budget`, or of `least_kv` if that is 0. Throws Failure.
[[nodiscard]] MemoryNeed need_of(const tessera::ModelSource& source, tessera::EngineOptions options, std::uint32_t max_running);
// Chooses the KV budgets of models that share `memory`: each gets what it wants, but at most an equal share of what the weights of all
// models leave free, or an eighth of the memory if that is more. Exception: never less than least_kv.
void share_kv(std::span<MemoryNeed> needs, std::uint64_t memory);

// Returns the KV budget of a server with one model and without a limit of its memory: the bytes of max_running + 1 full contexts, but at most
// half of the memory that the weights leave free. Exception: never less than one and a quarter full contexts. Throws Failure.
[[nodiscard]] std::uint64_t kv_budget_alone(const tessera::ModelSource& source, const tessera::EngineOptions& options, std::uint32_t max_running);

// Returns "98.1 MB".
[[nodiscard]] std::string in_units(std::uint64_t bytes);

}  // namespace server
