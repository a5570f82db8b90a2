// Prints the results, as a table or as JSON. Each row is printed as soon as it is measured, so that an interrupted run has shown the
// results that it had.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "measure/measurement.hpp"

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

// Returns the lines above a table: machine, model, and the kernel of each operation.
[[nodiscard]] std::string heading(const Subject& setting);

// Returns the number with three significant digits, or with all digits in front of the point if they are more.
[[nodiscard]] std::string number(double value);

// Writes to standard output and flushes. Throws Failure on an error.
void print(std::string_view text);

}  // namespace tessera::bench
