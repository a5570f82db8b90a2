// Models whose layers have different sliding windows: a golden one, given one window for each layer (0: none).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/changed_model.hpp"

namespace tessera::test {

inline Engine with_windows(const std::string& name, const std::vector<std::int32_t>& windows, const EngineOptions& options = {}) {
  return changed_model(
      name, [&](GgufWriter& writer) { must(writer.set_array("llama.attention.sliding_window", std::span(windows))); }, options);
}

}  // namespace tessera::test
