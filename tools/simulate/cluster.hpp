// Several replicas, and the router that distributes the requests among them.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "replica.hpp"

namespace tessera::simulate {

enum class Router : std::int32_t {
  round_robin,
  least_work,  // chooses the replica with the fewest rows still to compute
  prefix,      // the same, minus the tokens of the prompt's beginning that a replica has
};
[[nodiscard]] std::string_view to_string(Router router) noexcept;
[[nodiscard]] std::optional<Router> parse_router(std::string_view name) noexcept;

// Called from time to time with the share of the trace that is served. Return false to end the simulation.
using Progress = std::function<bool(double share)>;

// Serves a trace. The texts of the figures are left empty for the caller to fill. nullopt: `progress` ended the simulation.
[[nodiscard]] std::optional<tool::ServingFigures> serve(const tool::Trace& trace, const ReplicaOptions& options,
                                                        std::uint32_t replicas, Router router,
                                                        const tool::ServiceLevel& level, const Progress& progress = {});

}  // namespace tessera::simulate
