// The draw: inverse transform sampling (Devroye, "Non-Uniform Random Variate Generation", 1986, section III.2.1).
#pragma once

#include <cstddef>
#include <span>

#include <tessera/extend/sampling/candidates.hpp>

namespace tessera::sampling {

// Draws from a list of candidates, in the same way as Candidates::draw(): returns the index of the first candidate at which the running sum
// of probabilities passes uniform * (sum of all probabilities). Never returns a candidate of probability 0. Preconditions: `distribution`
// has a probability above 0; uniform is in [0, 1).
[[nodiscard]] std::size_t draw(std::span<const Candidate> distribution, double uniform) noexcept;

}  // namespace tessera::sampling
