// A line of progress on standard error, if that is a terminal and the work takes over a second. It disappears at the end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "system/program.hpp"

namespace rag {

class ProgressLine {
 public:
  ProgressLine(std::string label, std::string unit)
      : label_(std::move(label)), unit_(std::move(unit)), enabled_(tessera::tool::is_terminal(tessera::tool::Standard::error)), next_(Clock::now() + std::chrono::seconds(1)) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

  void update(std::size_t done, std::size_t total) {
    if (!enabled_ || Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(100);
    shown_ = true;
    fmt::print(stderr, "\r{}: {} of {} {}\033[K", label_, done, total, unit_);
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_, unit_;
  bool enabled_, shown_ = false;
  Clock::time_point next_;
};

}  // namespace rag
