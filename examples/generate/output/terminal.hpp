// Standard output and standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

// Writes to standard output and flushes. Throws Failure on an error.
void print(std::string_view text);

// Writes a line "generate: ..." to standard error. Control characters become '?'.
void complain(std::string_view text);

// Returns "1.06 MB": decimal units, three digits.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

// Returns "12.3 ms", "4.56 s".
[[nodiscard]] std::string human_seconds(double seconds);

// A progress bar on standard error, if that is a terminal and the work takes over a second. It disappears when the work is done.
class ProgressBar {
 public:
  enum class Unit { bytes, tokens };
  ProgressBar(std::string label, Unit unit);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  void update(std::uint64_t done, std::uint64_t total);
  void finish();  // removes the bar; the destructor does so too

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  Unit unit_;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point next_;  // when to draw again
};
