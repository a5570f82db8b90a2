// The step of classes that compute their own steps: generations, samples and beam searches. A step is one run: the sequences add their
// rows, the run computes them, and the sequences read the results.
//
// The scheduler does not use drive_step(), because it does more in a step: it preempts and admits requests while rows are added, it measures
// the computation, and an error ends only one request.
#pragma once

#include <stop_token>
#include <string_view>

#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "engine/run/run.hpp"
#include "engine/views.hpp"

namespace tessera::detail {

// Computes one step: calls offer(run), which adds parts to the run (possibly none), computes the run, and returns take(run). Errors: those
// of offer() and take(); cancelled if `stop` is requested, with the message "stopped before" and the text `before`.
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
