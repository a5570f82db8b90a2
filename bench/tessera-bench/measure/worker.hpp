// --worker: keeps the engine loaded, and measures one test for each line on standard input. With it bench/compare lets several loaded
// engines take short turns.
#pragma once

#include <istream>
#include <string>

#include "measure/measurement.hpp"
#include "measure/tests.hpp"
#include "options.hpp"

namespace tessera::bench {

// Parses a line {"test": "prefill" | "decode" | "batch" | "depth", "n": count, "steps": steps}. Without "steps" the options' steps apply.
// Throws Failure if the line has another form, or if the test needs more context than options.context().
[[nodiscard]] Request parse_request(const std::string& line, const Options& options);

// Writes JSON objects to standard output, one a line: first a description of the engine, then the result of each line of `in`, as --json
// writes it. If a line fails, its result is {"error": ...}, and the next line is read. Returns at the end of `in`; throws Interrupted after
// Ctrl-C.
void serve(std::istream& in, const Subject& setting, const Options& options, Tests& tests);

}  // namespace tessera::bench
