// Start-up as seen by rank 0: connects to the ranks in other processes, and waits until they have loaded their parts.
#pragma once

#include <memory>
#include <string>

#include <tessera/engine.hpp>

#include "backend/backend.hpp"
#include "model/model.hpp"
#include "ranks/processes/rank_messages.hpp"
#include "ranks/processes/process_ranks.hpp"

namespace tessera::detail {

// Connects to the ranks in other processes (EngineOptions::rank_addresses, or EngineOptions::rank_transport if it is set), and sends each
// rank its number and the settings by which it loads its part of the model (message `Welcome`). `context`: the most tokens of a session.
// Returns when all ranks have accepted. Errors: invalid_argument, an address is malformed, or a rank refuses; io, nobody listens at an
// address; device_error, a rank disconnects, or its answer is not a message of this version; cancelled.
[[nodiscard]] Result<std::unique_ptr<ProcessRanks>> connect_ranks(const EngineOptions& options, const ModelSpec& spec, std::uint32_t context);

// Waits until all ranks have loaded their parts (message `Ready`), and compares the ranks' weights and kernels with this rank's. Errors:
// cancelled, `stop` was requested; invalid_argument, a rank refuses, or has other weights or kernels; device_error, a rank has disconnected.
[[nodiscard]] Status await_ranks(ProcessRanks& ranks, const Hash128& weights, const backend::Backend& backend, const std::stop_token& stop);

// Returns the families of the kernels by which the backend computes each operation and format. If two ranks compute the same operation
// and format, await_ranks() requires that they use the same families for it.
[[nodiscard]] std::vector<RankFamily> families_of(const backend::Backend& backend);

}  // namespace tessera::detail
