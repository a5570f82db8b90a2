// Limits of a scheduler's steps: how long a step takes, how many rows (tokens) it computes, and how many requests run at once.
#pragma once

#include <cstdint>

namespace tessera {

enum class Batching : std::int32_t {
  continuous = 0,  // requests come and go at every step
  dynamic = 1,     // a batch begins when max_running requests wait, or one request has waited max_wait; no request joins a batch later
  fixed = 2,       // a batch begins when the batch before has ended, with the requests that wait then
};

struct StepLimits {
  double seconds = 0.05;             // seconds that a step in which requests decode may take
  std::uint32_t rows = 512;          // rows of a step at most
  std::uint32_t max_running = 64;    // requests at once; samples and beams count
  Batching batching = Batching::continuous;
  double max_wait = 0.1;             // seconds; dynamic batching
  // How many free pages admission leaves for tokens that will be drawn later: a share, 0 to 1, of the tokens that the new request and all
  // running requests are still expected to draw. A request is admitted if there are pages for its prompt and for this share. 0: beside the
  // prompt only the next page of each request is counted, so more requests run, and preemptions are likelier. 1: if the expected lengths
  // are right, no request is ever preempted.
  double headroom = 0.25;
  // Of the rows that a step has for prompts, the share that the first prompt in the order always keeps: above 0, at most 1. The other rows
  // may go to later prompts of the same rank that are so short that they still finish before the first one. The first prompt then takes at
  // most 1 / first_share times as many steps as without the shorter prompts. 1: no later prompt is served before the first.
  double first_share = 0.25;
};

}  // namespace tessera
