// One test after another, as lines on standard input ask for them: so that engines that are all loaded take short turns
// (bench/compare).
#pragma once

#include <istream>
#include <string>

#include "measurement.hpp"
#include "options.hpp"
#include "tests.hpp"

namespace tessera::bench {

// {"test": "prefill" | "decode" | "batch" | "depth", "n": count, "steps": steps}; steps are the options' if it names
// none. Throws Failure if the line is not that, or asks for more context than the options have.
[[nodiscard]] Request parse_request(const std::string& line, const Options& options);

// Says on standard output, a JSON object a line, what it is, and then what came of each line of `in`: what --json says,
// or {"error": ...}, after which it goes on. Ends with `in`; throws Interrupted after Ctrl-C.
void serve(std::istream& in, const Subject& setting, const Options& options, Tests& tests);

}  // namespace tessera::bench
