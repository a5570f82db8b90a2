#include "engine/identity.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace tessera::detail {
namespace {

std::string positions_of(const Model& model) {
  const ModelSpec& spec = model.spec;
  if (spec.positions == Positions::learned) return "learned";
  std::string text = fmt::format("rope {} dim {} theta {} linear {} frequencies",
                                 spec.rope_pairs == RopePairs::interleaved ? "interleaved" : "halves", spec.rope_dim,
                                 spec.rope_theta, spec.rope_linear_factor);
  for (const double frequency : model.rope_frequencies) text += fmt::format(" {}", frequency);
  return text;
}

std::string windows_of(const ModelSpec& spec) {
  std::string text;
  for (const LayerSpec& layer : spec.layers) text += fmt::format("{}{}", text.empty() ? "" : " ", layer.window);
  return text;
}

constexpr std::string_view kCpu = "cpu";  // whose name numerics do not say

}  // namespace

std::string_view backend_of(std::string_view numerics) noexcept {
  const std::size_t end = numerics.find_first_of(": ");
  return end != numerics.npos && numerics[end] == ':' ? numerics.substr(0, end) : kCpu;
}

Identity make_identity(const Model& model, const backend::Backend& backend) {
  std::set<std::string> families;
  for (backend::Explanation& line : backend.explain()) {
    if (!line.family.empty()) families.insert(std::move(line.family));
  }
  const bool of_cpu = backend.name() == kCpu;
  return {.model = fmt::format("{} {:016x}{:016x}", model.spec.architecture, model.weights_hash.high, model.weights_hash.low),
          .numerics = fmt::format("{}{}{}", of_cpu ? "" : backend.name(), of_cpu ? "" : ": ", fmt::join(families, " ")),
          .positions = positions_of(model),
          .windows = windows_of(model.spec)};
}

std::string prefix_identity(const Identity& identity, DType dtype, std::string_view salt) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", identity.model, identity.numerics, identity.positions, identity.windows,
                     to_string(dtype), salt);
}

}  // namespace tessera::detail
