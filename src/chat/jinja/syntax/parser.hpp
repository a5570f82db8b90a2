// Makes a Program from tokens. The grammar is jinja2's (its parser.py).
#pragma once

#include <string_view>

#include "chat/jinja/syntax/ast.hpp"

namespace tessera::jinja {

// Parses a template. Throws a Failure that names line and construct.
[[nodiscard]] Program parse(std::string_view source);

}  // namespace tessera::jinja
