// --speculate: finds out how much speculation gains for this model on this machine, in two ways: by a formula with measured costs
// (tessera/unstable/decoding/speculation_estimate.hpp), and by a measurement.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::bench {

struct Options;

struct SpeculateTest {
  bool wanted = false;
  std::uint32_t most = 8;                        // the most drafts of a step
  std::vector<double> acceptance = {0.5, 0.8};   // probabilities that a draft is right; the test runs once for each
  double draft_ms = 0.0;                         // milliseconds to make one draft
  bool mtp = false;                              // true: the model's MTP head makes drafts, and its time is measured
};

void measure_speculation(const Options& options);

}  // namespace tessera::bench
