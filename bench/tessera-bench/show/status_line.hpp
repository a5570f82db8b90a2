// A line on standard error, if that is a terminal, that shows what the program is doing. It is removed when results are printed.
#pragma once

#include <chrono>
#include <string_view>

namespace tessera::bench {

class StatusLine {
 public:
  StatusLine() noexcept;
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine() { clear(); }

  // Shows the text if the last clear() was over a second ago, at most ten times a second.
  void show(std::string_view text);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_, shown_ = false;
  Clock::time_point next_;
};

}  // namespace tessera::bench
