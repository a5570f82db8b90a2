// The tests themselves.
#pragma once

#include <functional>

#include <tessera/engine.hpp>

#include "costs.hpp"
#include "limits.hpp"
#include "options.hpp"
#include "measurement.hpp"
#include "status_line.hpp"

namespace tessera::bench {

// Runs what the options ask for and passes on each result as it is there. Throws Interrupted after Ctrl-C.
void run_tests(const Engine& engine, const ModelCosts& costs, const Options& options, Machine& machine,
               StatusLine& status, const std::function<void(const Measurement&)>& tell);

}  // namespace tessera::bench
