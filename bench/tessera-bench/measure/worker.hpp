// --worker: the program loads the engine once, and then runs one test for each line that it reads from standard input. bench/compare uses
// this to let several engines, which all stay loaded, take short turns.
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
