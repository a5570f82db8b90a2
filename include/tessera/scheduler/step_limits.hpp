// Limits of a scheduler's steps: how long one takes, how many rows it has, how many requests run at once.
#pragma once

#include <cstdint>

namespace tessera {

enum class Batching : std::int32_t {
  continuous = 0,  // requests come and go at every step
  dynamic = 1,     // a batch begins when max_running requests wait or one has waited max_wait; none joins until all have ended
  fixed = 2,       // a batch begins when the one before has ended, with the requests that wait
};

struct StepLimits {
  double seconds = 0.05;             // the time of a step in which requests decode
  std::uint32_t rows = 512;          // rows of a step at most
  std::uint32_t max_running = 64;    // requests at once; samples and beams count
  Batching batching = Batching::continuous;
  double max_wait = 0.1;             // seconds; dynamic batching
  // A request is admitted if there is also room for this share of the tokens that running requests are still expected to draw. 0:
  // only for the page that each takes next. 1: no request is ever preempted if the expected lengths are right.
  double headroom = 0.25;
  // Among prompts of equal rank, later prompts that would still finish earlier are served before the rest of the first one. The first
  // one keeps this share of the rows that the step has for prompts. So it takes at most 1 / first_share times as many steps as without
  // them. 1: no later prompt is served before it.
  double first_share = 0.25;
};

}  // namespace tessera
