// Rows of any sessions through the model, in steps that the workspace holds; all or nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>

#include "engine/run_lists.hpp"
#include "engine/states.hpp"

namespace tessera::detail {

struct RunOptions {
  std::uint32_t first_layer = 0;
  std::uint32_t last_layer = 0;
  std::stop_token stop;
  std::function<bool(std::size_t done, std::size_t total)> progress;
  bool cuts = true;  // streams that these rows fill; else the caller does, when nothing can fail any more
};

// Appends the rows to their sessions. On error every session is as it was; but a stream that was full already, as its cut
// had failed or it was restored so, may have been cut.
Status run_batch(const Engine::State& engine, std::span<const RunRow> rows, const RunOptions& options, OutputSink& sink);

// The whole model.
[[nodiscard]] inline RunOptions all_layers(const Engine::State& engine, const std::stop_token& stop) {
  return {.first_layer = 0, .last_layer = engine.model.spec.n_layers(), .stop = stop, .progress = {}};
}

}  // namespace tessera::detail
