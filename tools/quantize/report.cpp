#include "report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include <tessera/extend/formats/rows.hpp>

#include "terminal_text.hpp"

namespace tessera::quantize {

namespace {

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (size >= 1024 && unit + 1 < std::size(kUnits)) {
    size /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", size, kUnits[unit]);
}

struct Total {
  std::uint64_t tensors = 0, values = 0, before = 0, after = 0;
  Loss loss;

  void add(const TensorPlan& step, const Loss& more) {
    ++tensors;
    values += step.values;
    before += step.tensor->bytes;
    after += step.bytes;
    loss.squares += more.squares;
    loss.error += more.error;
  }

  void print(std::string_view name) const {
    const double bits = values > 0 ? 8.0 * static_cast<double>(after) / static_cast<double>(values) : 0;
    const std::string rmse = loss.error > 0 ? fmt::format("{:.6f}", std::sqrt(loss.error / loss.squares)) : "-";
    fmt::print("{:<8}{:>8}{:>12}{:>12}{:>12.2f}{:>11}\n", name, tensors, size_text(before), size_text(after), bits,
               rmse);
  }
};

}  // namespace

ProgressLine::ProgressLine(std::uint64_t total, const char* verb) noexcept : total_(total), verb_(verb), terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::advance(std::uint64_t values) noexcept {
  done_ += values;
  if (!terminal_ || total_ == 0) return;
  const int percent = static_cast<int>(100.0 * static_cast<double>(done_) / static_cast<double>(total_));
  if (percent == shown_) return;
  shown_ = percent;
  const std::size_t filled = static_cast<std::size_t>(percent) * 30 / 100;
  constexpr char kBar[] = "##############################";
  std::fprintf(stderr, "\r%s [%-30.*s] %3d%%", verb_, static_cast<int>(filled), kBar, percent);
  std::fflush(stderr);
}

void ProgressLine::clear() noexcept {
  if (shown_ < 0) return;
  shown_ = -1;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

void print_tensor(const TensorPlan& step) {
  std::string dims;
  for (std::uint32_t d = 0; d < step.tensor->n_dims; ++d) dims += fmt::format("{}{}", d > 0 ? " x " : "", step.tensor->dims[d]);
  fmt::print(stderr, "{}: [{}] {} to {}, {} to {}{}{}\n", tool::shown(step.tensor->name), dims, to_string(step.tensor->dtype),
             to_string(step.to), size_text(step.tensor->bytes), size_text(step.bytes), step.note.empty() ? "" : "; ", step.note);
}

void print_table(std::span<const TensorPlan> steps, std::span<const Loss> losses, double seconds) {
  Total all;
  fmt::print("{:<8}{:>8}{:>12}{:>12}{:>12}{:>11}\n", "format", "tensors", "before", "after", "bits/weight", "rel. RMSE");
  for (const DType type : formats::all()) {
    Total total;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (steps[i].to == type) total.add(steps[i], losses[i]);
    if (total.tensors > 0) total.print(to_string(type));
  }
  for (const TensorPlan& step : steps) all.add(step, {});  // without losses, because the mean error of different formats says nothing
  all.print("all");
  const auto fallbacks = std::count_if(steps.begin(), steps.end(), [](const TensorPlan& step) { return !step.note.empty(); });
  if (fallbacks > 0) {
    fmt::print("{} tensor{} took another format, as a row is not whole blocks of the wanted one (--verbose names them)\n",
               fallbacks, fallbacks == 1 ? "" : "s");
  }
  fmt::print("{:.2f} bits a weight, {:.1f} s\n", 8.0 * static_cast<double>(all.after) / static_cast<double>(std::max<std::uint64_t>(all.values, 1)),
             seconds);
}

}  // namespace tessera::quantize
