// What takes long is told on standard error, if that is a terminal, in one line that goes away again.
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

  // Shown if the last clear() was over a second ago, ten times a second at most.
  void show(std::string_view text);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_, shown_ = false;
  Clock::time_point next_;
};

}  // namespace tessera::bench
