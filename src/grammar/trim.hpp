// Removes from a program all edges, list items and object properties that cannot occur in any complete text, and marks the rules that may
// match the empty text.
#pragma once

#include "grammar/program.hpp"

namespace tessera::grammar {

void trim(Program& program);

}  // namespace tessera::grammar
