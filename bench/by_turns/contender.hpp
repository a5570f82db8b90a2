// The interface between by_turns and a library of kernels (one build). It has only C types, so that libraries built from different versions
// of tessera can take part in one run.
#pragma once

#include <cstddef>

extern "C" {

struct Question {
  const char* family;  // name of the arithmetic family: docs/reference/numerics.md
  const char* form;    // name of the packed form of the weights: cpu/products/packed_layout.hpp
  std::size_t rows, inputs;
  std::size_t ahead_bytes;  // how many bytes beyond its present reads the kernel prefetches (cpu::Ahead)
  bool all_lines;
};

// A matrix product of one thread, with `rows` made-up rows of activations.
struct Contender {
  void* state;
  std::size_t panel_bytes, panel_outputs;
  std::size_t least_panels;  // the panels of one multiply() call must be a multiple of this number
  void (*multiply)(void* state, const std::byte* weights, std::size_t panels);
};

// Makes the product that `question` describes. Returns an empty text, or the reason why this build has none.
const char* tessera_contender(const Question* question, Contender* contender);
}
