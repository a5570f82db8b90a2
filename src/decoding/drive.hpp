// The loop of everything that computes its own steps: generations, samples and beam searches. A step is a run: the sequences offer their
// rows, the run computes them, and the sequences take the results.
//
// The scheduler does not use it: between offering and taking it preempts, admits and measures, and an error there ends one request only.
#pragma once

#include <stop_token>
#include <string_view>

#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "engine/run/run.hpp"
#include "engine/views.hpp"

namespace tessera::detail {

// Computes one step: calls offer(run), which adds parts to the run or none, computes the run, and returns take(run). Errors: those of
// offer() and take(); cancelled if `stop` is requested, with `before` as the text.
template <class Offer, class Take>
Status drive_step(const Engine::State& engine, const std::stop_token& stop, std::string_view before, Offer&& offer, Take&& take) {
  if (stop.stop_requested()) return make_error(ErrorCode::cancelled, "stopped before {}", before);
  const FpState fp_state;
  Run run(engine, all_layers(engine, stop));
  TESSERA_TRY_STATUS(offer(run));
  run.compute();
  return take(run);
}

}  // namespace tessera::detail
