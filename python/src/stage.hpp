// A stage of a sampler that is written in Python.
#pragma once

#include "types/boxes.hpp"

namespace tessera::python {

// Returns a maker of a stage that calls `callable(tokens, logits)`, or `callable(tokens, logits, context)` if
// `callable` accepts three arguments.
StageMaker python_stage(const nb::object& callable);

void bind_stage(nb::module_& m);

}  // namespace tessera::python
