#include "show/status_line.hpp"

#include <cstdio>
#include <string>

#include <unistd.h>

namespace tessera::bench {

StatusLine::StatusLine() noexcept
    : terminal_(::isatty(STDERR_FILENO) == 1), next_(Clock::now() + std::chrono::seconds(1)) {}

void StatusLine::show(std::string_view text) {
  const auto now = Clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  shown_ = true;
  const std::string line = std::string("\r").append(text.substr(0, 79)).append("\033[K");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void StatusLine::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
  next_ = Clock::now() + std::chrono::seconds(1);
}

}  // namespace tessera::bench
