// Standard output and standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

// Writes and flushes; throws Failure where that does not work.
void print(std::string_view text);

// One line on standard error, "generate: ..."; control characters in it become '?'.
void complain(std::string_view text);

// "1.06 MB": decimal units, three digits.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

// "12.3 ms", "4.56 s".
[[nodiscard]] std::string human_seconds(double seconds);

// A bar on standard error, if that is a terminal and the work takes over a second; gone when the work is done.
class ProgressBar {
 public:
  enum class Unit { bytes, tokens };
  ProgressBar(std::string label, Unit unit);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  void update(std::uint64_t done, std::uint64_t total);
  void finish();  // takes the bar away, as the destructor does

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  Unit unit_;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point next_;  // when to draw again
};
