// One build of the kernels as by_turns sees it. C types only: builds of different days take part in one run.
#pragma once

#include <cstddef>

extern "C" {

struct Question {
  const char* family;  // docs/numerics.md
  const char* form;    // cpu/products/packed_layout.hpp
  std::size_t rows, inputs;
  std::size_t ahead_bytes;  // cpu::Ahead
  bool all_lines;
};

// A product of `rows` made-up rows; of one thread.
struct Contender {
  void* state;
  std::size_t panel_bytes, panel_outputs;
  std::size_t least_panels;  // of a call, or a multiple of them
  void (*multiply)(void* state, const std::byte* weights, std::size_t panels);
};

// Empty, or why there is none.
const char* tessera_contender(const Question* question, Contender* contender);
}
