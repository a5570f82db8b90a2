// Removes from a program what cannot occur in any complete text: edges, list items and object properties. Also marks the rules that may
// match the empty text (ProgramRule::nullable).
#pragma once

#include "grammar/program.hpp"

namespace tessera::grammar {

void trim(Program& program);

}  // namespace tessera::grammar
