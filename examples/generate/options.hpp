// The options of the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "adapters.hpp"
#include "drafting.hpp"
#include "machine_options.hpp"
#include "several.hpp"

inline constexpr std::size_t kDefaultMaxTokens = 256;

enum class Mode { generate, tokenize, detokenize, logits, plan, explain, render, chat };
enum class WhenFull { drop, compact, stop };  // treatment of the oldest turns when a conversation fills its context
enum class OutputKind { text, text_at_end, tokens, json };

struct Options {
  Mode mode = Mode::generate;
  OutputKind output = OutputKind::text;

  std::optional<std::string> model;  // none: the model inside the binary
  std::vector<tessera::MergedAdapter> merge;

  // The prompt: at most one of the three.
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;  // "-" is standard input
  std::optional<std::vector<tessera::Token>> prompt_ids;
  bool no_bos = false;
  bool no_special = false;
  bool no_echo = false;

  std::vector<LoraOption> lora;

  std::optional<std::string> load_session, save_session;  // files

  std::optional<std::size_t> max_tokens;
  std::vector<std::string> stop_strings;
  bool ignore_eos = false;
  std::uint32_t logprobs = 0;

  // The constraint of the text: at most one of the four.
  std::optional<std::string> json_schema;  // a file, or the schema itself
  std::optional<std::string> regex;
  std::optional<std::string> grammar_file;
  std::optional<std::string> choice;  // texts separated by commas

  bool greedy = false;
  float temperature = 0.8f;
  std::size_t top_k = 0;
  float top_p = 0.95f;
  float min_p = 0.0f;
  float repeat_penalty = 1.0f;
  std::optional<std::size_t> repeat_last;  // last tokens that the penalty counts; none: all
  bool penalizes_prompt = false;
  std::optional<std::uint64_t> seed;  // none: a fresh one for each run

  DraftingOptions drafting;
  tessera::EarlyExitOptions early_exit;  // layers is 0: no early exit
  std::optional<float> exit_confidence;
  SeveralOptions several;

  tessera::BackendKind backend = tessera::BackendKind::cpu;
  tessera::CudaOptions cuda;
  tessera::Numerics numerics = tessera::Numerics::automatic;
  tessera::Activations activations = tessera::Activations::automatic;
  tessera::InstructionSet instruction_set = tessera::InstructionSet::automatic;
  tessera::KvOptions kv;
  std::uint32_t context = 0;
  std::optional<std::uint32_t> sliding_window;  // instead of the model's; 0: off
  std::uint32_t keep = 0;  // window of tokens to which a full context is cut; 0: a full context ends the text
  std::uint32_t threads = 0;
  tessera::tool::Ranks ranks;
  tessera::LogLevel log_level = tessera::LogLevel::warning;

  std::string logits_file;

  // --render: a file with a conversation, and files that replace the model's template and the tools.
  std::string render_file;
  std::optional<std::string> template_file, tools_file;
  bool render_tokens = false;

  // --chat, which also uses the template and the tools above.
  std::optional<std::string> system;
  WhenFull when_full = WhenFull::drop;
  std::optional<bool> think;
  std::optional<std::size_t> most_reasoning;  // tokens
  std::string tool_choice = "auto";           // none, required, or a tool's name
};

// Reads the command line. nullopt: --help or --version was asked for and has been printed. Throws UsageError.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv);

// Parses ids separated by spaces, line ends or commas. nullopt: the text has something else.
[[nodiscard]] std::optional<std::vector<tessera::Token>> parse_ids(const std::string& text);

// The text of --help below the options.
extern const char* const kHelpFooter;
