// Grammars as JSON: {"regex": "[0-9]+"}, {"json_schema": {...}}.
#pragma once

#include <tessera/grammar/compiled.hpp>

#include "engine.hpp"
#include "options/json_options.hpp"

namespace tessera::c {

[[nodiscard]] CompiledGrammar read_grammar(EngineState& engine, const Value& value);
// Reads the options of a schema: space, order, ...
void read_schema_options(const Value& value, JsonSchemaOptions& to);

}  // namespace tessera::c

struct tessera_grammar : tessera::c::Tagged<tessera::c::Kind::grammar> {
  explicit tessera_grammar(tessera::CompiledGrammar of) noexcept : grammar(std::move(of)) {}
  tessera::CompiledGrammar grammar;
};
