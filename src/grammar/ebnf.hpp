// Parses grammars that are given as text (EBNF; docs/explanation/grammar.md has the syntax).
#pragma once

#include <string_view>

#include "grammar/ir.hpp"

namespace tessera::grammar {

[[nodiscard]] Form parse_ebnf(Ir& ir, std::string_view text);

}  // namespace tessera::grammar
