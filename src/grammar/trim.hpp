// Takes the parts out of a program that cannot be completed, and finds the rules that may be empty.
#pragma once

#include "grammar/program.hpp"

namespace tessera::grammar {

void trim(Program& program);

}  // namespace tessera::grammar
