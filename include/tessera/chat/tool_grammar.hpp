// A grammar from an output format: what a model may write when it is to call a tool, in its own way of writing calls, with
// arguments that the tool's schema accepts. What the grammar allows, OutputParser reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/chat/output_format.hpp>
#include <tessera/core/result.hpp>
#include <tessera/grammar/compiled.hpp>
#include <tessera/grammar/grammar.hpp>
#include <tessera/json/json.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

// required: reasoning, where the format has it, and then calls. at_once: no reasoning in front, but what a prompt has begun.
// after_text: calls behind any text. automatic: text, with calls or without; of calls that no marker begins (Llama's) nothing
// is said then.
enum class ToolUse : std::int32_t { required = 0, at_once = 1, after_text = 2, automatic = 3 };

struct ToolGrammarOptions {
  ToolUse use = ToolUse::required;
  std::string name{};                // the one tool that may be called; empty: any
  std::size_t max_calls = 0;         // 0: any number
  bool starts_in_reasoning = false;  // as OutputParserOptions has it
  JsonSchemaOptions json{.space = JsonSpace::blank, .numbers = JsonNumbers::plain};

  // Returns a text that is the same for equal options and for those alone: what a cache of grammars looks by.
  [[nodiscard]] std::string key() const;
};

// tools: as ChatRequest has them. Arguments that are written as JSON may be any that the schema accepts. Where a format writes
// parameters one by one, or as Python or Gemma do, they are those of `properties`, in their order. Parameters that may be strings
// stand there as they are, with their enum, const, minLength, maxLength, pattern and format, and without the format's markers; in
// Python's and Gemma's strings enum and const are held. Of other keywords JsonSchemaOptions::unsupported says what becomes.
// Errors: no tools, or none of that name; unsupported: a format without calls, a keyword that cannot be held, by its path.
[[nodiscard]] Result<Grammar> tool_grammar(const OutputFormat& format, std::span<const Json> tools,
                                           const ToolGrammarOptions& options = {}) noexcept;

struct ToolGrammar {
  Grammar grammar;
  // A sentence for each tool whose schema is not held whole: which tool, and what of it.
  std::vector<std::string> warnings;
};
// The same, but a tool whose schema cannot be held takes nothing from the other tools: of that tool what can be held is, at the
// least its name and those of its parameters. A tool whose name the format cannot write is left out.
// Errors: no tools, or none of that name, or none that can be called; unsupported: a format without calls.
[[nodiscard]] Result<ToolGrammar> held_tool_grammar(const OutputFormat& format, std::span<const Json> tools,
                                                    const ToolGrammarOptions& options = {}) noexcept;

// A vocabulary in which the control tokens that the format's markers are made of are their texts, so that a grammar with
// them can be followed.
[[nodiscard]] Result<GrammarVocabulary> tool_vocabulary(const Tokenizer& tokenizer, const OutputFormat& format) noexcept;

}  // namespace tessera
