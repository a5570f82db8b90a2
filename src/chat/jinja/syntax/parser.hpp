// Tokens to a Program: jinja2's grammar, as its parser.py has it.
#pragma once

#include <string_view>

#include "chat/jinja/syntax/ast.hpp"

namespace tessera::jinja {

// Throws Failure, with line and construct.
[[nodiscard]] Program parse(std::string_view source);

}  // namespace tessera::jinja
