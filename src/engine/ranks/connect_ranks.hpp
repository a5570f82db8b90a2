// Rank 0's side of the beginning: connects to ranks in other processes, and waits until they have loaded their parts.
#pragma once

#include <memory>
#include <string>

#include <tessera/engine.hpp>

#include "backend/backend.hpp"
#include "model/model.hpp"
#include "ranks/processes/rank_messages.hpp"
#include "ranks/processes/process_ranks.hpp"

namespace tessera::detail {

// Connects to EngineOptions::rank_addresses, or takes EngineOptions::rank_transport, and tells each rank which part of the model it has. `context`: tokens of a session. Errors:
// invalid_argument, an address is none; io, nobody listens there; device_error.
[[nodiscard]] Result<std::unique_ptr<ProcessRanks>> connect_ranks(const EngineOptions& options, const ModelSpec& spec, std::uint32_t context);

// Waits until all ranks are ready, and compares their weights and kernels with this rank's. Errors: cancelled, `stop` was requested;
// invalid_argument, a rank refuses, or has other weights or other kernels; device_error, a rank is gone.
[[nodiscard]] Status await_ranks(ProcessRanks& ranks, const Hash128& weights, const backend::Backend& backend, const std::stop_token& stop);

// Returns a line for each operation and format: the family of the kernels that compute it. Ranks must not differ in any.
[[nodiscard]] std::vector<RankFamily> families_of(const backend::Backend& backend);

}  // namespace tessera::detail
