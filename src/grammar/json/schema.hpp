// Compiles a JSON Schema to a grammar.
#pragma once

#include <string_view>

#include <tessera/grammar/grammar.hpp>

#include "grammar/ir.hpp"

namespace tessera::grammar {

[[nodiscard]] Form compile_schema(Ir& ir, std::string_view schema, const JsonSchemaOptions& options);

}  // namespace tessera::grammar
