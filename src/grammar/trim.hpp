// Removes from a program the edges, list items and object properties that no complete text can contain, and marks the rules that may be
// empty.
#pragma once

#include "grammar/program.hpp"

namespace tessera::grammar {

void trim(Program& program);

}  // namespace tessera::grammar
