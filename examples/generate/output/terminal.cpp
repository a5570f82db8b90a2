#include "output/terminal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  throw Failure(tessera::ErrorCode::io, fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

void complain(std::string_view text) {
  tessera::tool::complain("generate", text);
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> units = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  double amount = static_cast<double>(bytes) / 1000.0;
  std::size_t unit = 0;
  while (amount >= 999.5 && unit + 1 < units.size()) {
    amount /= 1000.0;
    ++unit;
  }
  const int decimals = amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", amount, decimals, units[unit]);
}

std::string human_seconds(double seconds) {
  return seconds < 0.9995 ? fmt::format("{:.3g} ms", seconds * 1000.0) : fmt::format("{:.2f} s", seconds);
}

ProgressBar::ProgressBar(std::string label, Unit unit)
    : label_(std::move(label)),
      unit_(unit),
      enabled_(tessera::tool::is_terminal(tessera::tool::Standard::error)),
      next_(Clock::now() + std::chrono::seconds(1)) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::finish() {
  if (std::exchange(shown_, false)) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  if (!enabled_ || total == 0 || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  shown_ = true;
  constexpr std::size_t width = 30;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto full = static_cast<std::size_t>(share * width);
  const std::string amount = unit_ == Unit::bytes ? fmt::format("{} of {}", human_bytes(done), human_bytes(total))
                                                  : fmt::format("{} of {} tokens", done, total);
  fmt::print(stderr, "\r{} [{}{}] {:.0f} %, {}\033[K", label_, std::string(full, '='), std::string(width - full, ' '),
             share * 100.0, amount);
  std::fflush(stderr);
}
