// A stage of a sampler that is written in Python.
#pragma once

#include "types/boxes.hpp"

namespace tessera::python {

// Returns a maker of a stage that calls `callable(tokens, logits)`. If `callable` has a third parameter without a
// default, or one with the name `context`, the stage passes the context too.
StageMaker python_stage(const nb::object& callable);

void bind_stage(nb::module_& m);

}  // namespace tessera::python
