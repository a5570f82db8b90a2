// --speculate: what drafts would bring for this model on this machine, by the formula with measured costs
// (tessera/decoding/speculation_estimate.hpp), and what they do bring.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::bench {

struct Options;

struct SpeculateTest {
  bool wanted = false;
  std::uint32_t most = 8;                        // drafts of a step
  std::vector<double> acceptance = {0.5, 0.8};   // chances that a draft is right
  double draft_ms = 0.0;                         // that one takes to make
  bool mtp = false;                              // the model's MTP head makes them, which is measured
};

void measure_speculation(const Options& options);

}  // namespace tessera::bench
