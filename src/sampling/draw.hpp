// The draw: inverse transform sampling (Devroye, "Non-Uniform Random Variate Generation", 1986, section III.2.1).
#pragma once

#include <cstddef>
#include <span>

#include <tessera/extend/sampling/candidates.hpp>

namespace tessera::sampling {

// Draws from rows as Candidates::draw() does. Returns the index of the first candidate at which the running sum of probabilities
// passes uniform * their sum; never a candidate of probability 0. `distribution` must not be empty nor all zero; uniform in [0, 1).
[[nodiscard]] std::size_t draw(std::span<const Candidate> distribution, double uniform) noexcept;

}  // namespace tessera::sampling
