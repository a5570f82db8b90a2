// Writes the values of the library (plans, kernels, sessions, figures, results) as JSON for callers of the C ABI.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <tessera/batch.hpp>
#include <tessera/engine.hpp>
#include <tessera/json/json.hpp>
#include <tessera/scheduler/scheduler.hpp>

namespace tessera::c {

[[nodiscard]] inline Json whole(std::uint64_t number) {
  if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return static_cast<std::int64_t>(number);
  return Json::WrittenNumber{std::to_string(number)};
}
// Returns the number as JSON; null if the number is not finite, because JSON has no such numbers.
[[nodiscard]] Json real(double number);

[[nodiscard]] Json describe(const Plan& plan);
[[nodiscard]] Json describe(const std::vector<KernelUse>& kernels);
[[nodiscard]] Json describe_model(const Engine& engine);
[[nodiscard]] Json describe_kv(const Engine& engine);
[[nodiscard]] Json describe(const Session& session);
[[nodiscard]] Json describe(const Adapter& adapter);
[[nodiscard]] Json describe(const Figures& figures);
[[nodiscard]] Json describe(const Verification& verification);
[[nodiscard]] Json describe(const RequestFigures& figures);
[[nodiscard]] Json describe(const SchedulerFigures& figures);
[[nodiscard]] Json describe(const std::vector<Beam>& beams);

}  // namespace tessera::c
