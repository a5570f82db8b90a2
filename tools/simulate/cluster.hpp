// Several replicas and who gets which request.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "replica.hpp"

namespace tessera::simulate {

enum class Router : std::int32_t {
  round_robin,
  least_work,  // where the fewest rows are still to be computed
  prefix,      // likewise, less what the replica knows of the prompt's beginning
};
[[nodiscard]] std::string_view to_string(Router router) noexcept;
[[nodiscard]] std::optional<Router> parse_router(std::string_view name) noexcept;

// Called now and then with the share of the trace that is served; false ends the simulation.
using Progress = std::function<bool(double share)>;

// Empty figures' texts: the caller knows them. nullopt: it was ended.
[[nodiscard]] std::optional<tool::ServingFigures> serve(const tool::Trace& trace, const ReplicaOptions& options,
                                                        std::uint32_t replicas, Router router,
                                                        const tool::ServiceLevel& level, const Progress& progress = {});

}  // namespace tessera::simulate
