// Makes a grammar from an output format and a list of tools. The grammar allows outputs that call a tool in the form that the model writes,
// with arguments that the tool's schema accepts. OutputParser can read every output that the grammar allows.
//
//   auto grammar = tool_grammar(format, request.tools, {.use = ToolUse::required});
//   auto compiled = CompiledGrammar::create(*grammar, *tool_vocabulary(tokenizer, format));
//   auto matcher = Matcher::create(*compiled);                    // extend/grammar/matcher.hpp
//   auto sampler = sampling::chain().stage(sampling::GrammarStage{*matcher}).seed(1).build();
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/extend/chat/output_format.hpp>
#include <tessera/grammar/compiled.hpp>
#include <tessera/grammar/grammar.hpp>
#include <tessera/json/json.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

// The outputs that the grammar allows. If the prompt has begun reasoning, every output first ends this reasoning.
//   required    calls; before them the model may reason, if the format has reasoning
//   at_once     calls, without new reasoning
//   after_text  any text, then calls
//   automatic   text, with or without calls
// In formats whose calls have no opening marker (Llama's), a call looks like text, so `automatic` does not constrain calls.
enum class ToolUse : std::int32_t { required = 0, at_once = 1, after_text = 2, automatic = 3 };

struct ToolGrammarOptions {
  ToolUse use = ToolUse::required;
  std::string name{};                // the only tool that may be called; empty: all tools
  std::size_t max_calls = 0;         // limit of calls; 0: none
  bool starts_in_reasoning = false;  // the prompt ends in reasoning (OutputFormat::ends_in_reasoning())
  JsonSchemaOptions json{.space = JsonSpace::blank, .numbers = JsonNumbers::plain};

  // Returns a key for a cache of grammars. Two options have the same key exactly if they are equal.
  [[nodiscard]] std::string key() const;
};

// Returns the grammar of an output that calls tools. `tools` is ChatRequest::tools. A keyword of a schema is *enforced* (in names: held) if
// the grammar allows only values that the keyword accepts.
// The enforced keywords depend on how the format writes arguments:
//   as JSON                             The whole schema is enforced.
//   one by one, or as Python or Gemma   Each argument has a name of `properties`, and arguments come in the order of `properties`.
//   a string between markers            The string is written as it is (without quotes and escapes) and cannot contain the format's
//                                       markers. Its enum, const, minLength, maxLength, pattern and format are enforced.
//   a string as Python or Gemma         Its enum and const are enforced.
// JsonSchemaOptions::unsupported says what happens with keywords that the grammar cannot enforce.
// Errors: invalid_argument, no tools; not_found, no tool of that name; unsupported, a format without calls, or a keyword that cannot be
// enforced (the message has its path).
[[nodiscard]] Result<Grammar> tool_grammar(const OutputFormat& format, std::span<const Json> tools,
                                           const ToolGrammarOptions& options = {}) noexcept;

struct ToolGrammar {
  Grammar grammar;
  // A sentence for each tool whose schema the grammar enforces only in part: it names the tool and the part that is not enforced.
  std::vector<std::string> warnings;
};
// Returns the grammar of tool_grammar(), but accepts tools whose schema cannot be enforced completely. The grammar then enforces as much of
// the schema as possible, at least the tool's name and the names of its parameters. Other tools are not affected. A tool whose name the
// format cannot write is left out.
// Errors: invalid_argument, no tools; not_found, no tool of that name; unsupported, a format without calls, or no tool that can be called.
[[nodiscard]] Result<ToolGrammar> held_tool_grammar(const OutputFormat& format, std::span<const Json> tools,
                                                    const ToolGrammarOptions& options = {}) noexcept;

// Returns a vocabulary for the grammars of `format`. In it, each control token that occurs in the format's markers has its name as text, so
// that a matcher can follow a marker in the grammar.
[[nodiscard]] Result<GrammarVocabulary> tool_vocabulary(const Tokenizer& tokenizer, const OutputFormat& format) noexcept;

}  // namespace tessera
