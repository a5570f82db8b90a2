// How results are shown: rows as they come, so that a run that is cut short has shown what it measured.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "measurement.hpp"

namespace tessera::bench {

class Report {
 public:
  virtual ~Report() = default;
  virtual void begin(const Subject& setting, const Limits& limits) = 0;
  virtual void row(const Measurement& result) = 0;
  virtual void end(std::span<const Limits> history) = 0;
};

[[nodiscard]] std::unique_ptr<Report> make_table();
[[nodiscard]] std::unique_ptr<Report> make_json();

// What computes what, a line each: above any table.
[[nodiscard]] std::string heading(const Subject& setting);

// Three digits, or all before the point.
[[nodiscard]] std::string number(double value);

// Writes and flushes; throws Failure where that does not work.
void print(std::string_view text);

}  // namespace tessera::bench
