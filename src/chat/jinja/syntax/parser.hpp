// Makes a Program of tokens, by jinja2's grammar (its parser.py).
#pragma once

#include <string_view>

#include "chat/jinja/syntax/ast.hpp"

namespace tessera::jinja {

// Parses a template. Throws Failure, with line and construct.
[[nodiscard]] Program parse(std::string_view source);

}  // namespace tessera::jinja
