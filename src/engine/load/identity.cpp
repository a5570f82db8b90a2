#include "engine/load/identity.hpp"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "model/spec/spec_text.hpp"

namespace tessera::detail {
namespace {

constexpr std::string_view kCpu = "cpu";  // the only backend whose name numerics_of() leaves out

std::string prefix_of(const Identity& identity) { return identity.backend == kCpu ? "" : identity.backend + ": "; }

}  // namespace

std::string_view backend_of(std::string_view numerics) noexcept {
  const std::size_t end = numerics.find_first_of(": ");
  return end != numerics.npos && numerics[end] == ':' ? numerics.substr(0, end) : kCpu;
}

std::string numerics_of(const Identity& identity, const KvOptions& kv) {
  std::set<std::string> parts;
  std::set<std::string_view> rest, all;
  for (const Identity::Family& family : identity.families) {
    const bool attends = family.operation == Operation::attention;
    if (attends && family.dtype != kv.dtype && family.dtype != kv.wide.dtype) continue;
    all.insert(family.name);
    if (attends) {
      parts.insert("attention " + family.name);
    } else if (family.operation == Operation::linear) {
      parts.insert(fmt::format("linear {} {}", to_string(family.dtype), family.name));
    } else {
      rest.insert(family.name);
    }
  }
  if (all.size() == 1) return fmt::format("{}{}", prefix_of(identity), *all.begin());
  return fmt::format("{}{}; rest {}", prefix_of(identity), fmt::join(parts, "; "), fmt::join(rest, " "));
}

Identity make_identity(const Model& model, const backend::Backend& backend) {
  std::vector<Identity::Family> families;
  for (backend::Explanation& line : backend.explain()) {
    if (line.family.empty()) continue;
    families.push_back({line.operation, line.dtype.value_or(DType::automatic), std::move(line.family)});
  }
  return {.model = fmt::format("{} {:016x}{:016x}", model.spec.architecture, model.weights_hash.high, model.weights_hash.low),
          .backend = std::string(backend.name()),
          .families = std::move(families),
          .spec = spec_text(model.spec)};
}

std::string prefix_identity(const Identity& identity, const KvOptions& kv) {
  return fmt::format("{}\n{}\n{}\n{} {} {} {}\n{}", identity.model, numerics_of(identity, kv), identity.spec, to_string(kv.dtype),
                     to_string(kv.wide.dtype), kv.wide.first, kv.wide.last, kv.salt);
}

}  // namespace tessera::detail
