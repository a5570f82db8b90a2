// The output of the tool: progress on a terminal, a table at the end.
#pragma once

#include <cstdint>
#include <span>

#include "encode.hpp"
#include "plan.hpp"

namespace tessera::quantize {

// A line on standard error that is rewritten while the work goes on. Shown only on a terminal.
class ProgressLine {
 public:
  // `verb`: the program's activity, "quantising".
  explicit ProgressLine(std::uint64_t total, const char* verb = "quantising") noexcept;
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void advance(std::uint64_t values) noexcept;
  void clear() noexcept;

 private:
  std::uint64_t total_, done_ = 0;
  const char* verb_;
  int shown_ = -1;  // percent
  bool terminal_;
};

// Prints a line for a tensor to standard error: its format, its new format, and the step's note.
void print_tensor(const TensorPlan& step);

// Prints the summary: a line for each format, the total, and the time.
void print_table(std::span<const TensorPlan> steps, std::span<const Loss> losses, double seconds);

}  // namespace tessera::quantize
