#include "text/end_of_generation.hpp"

#include <iterator>

namespace tessera::detail {
namespace {

enum class When : std::uint8_t {
  always,     // nobody writes this by chance
  if_special  // could be ordinary text ("</s>" is HTML): only if the vocabulary gives it a special type
};
struct Ending {
  std::string_view text;
  When when;
};

constexpr std::string_view kToolResponse = "<|tool_response>";

// The list of llama.cpp (llama-vocab.cpp), which grew by bug reports.
constexpr Ending kEndings[] = {
    {"<|eot_id|>", When::always},         // Llama 3
    {"<|eom_id|>", When::always},         //
    {"<|end_of_text|>", When::always},    //
    {"<|im_end|>", When::always},         // ChatML: Qwen and many others
    {"<|endoftext|>", When::always},      // GPT-2, Qwen, Phi, Falcon
    {"<|end|>", When::always},            // Phi 3
    {"<|return|>", When::always},         // gpt-oss
    {"<|call|>", When::always},           //
    {"<|calls|>", When::always},          // Solar
    {"<|flush|>", When::always},          //
    {"<end_of_turn>", When::always},      // Gemma
    {"<turn|>", When::always},            // Gemma 4, which also ends where a tool is to answer
    {kToolResponse, When::always},        //
    {"<end_of_utterance>", When::always}, // SmolVLM
    {"<\xEF\xBD\x9C" "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>", When::always},  // DeepSeek
    {"<|EOT|>", When::always},            // DeepSeek Coder
    {"_<EOT>", When::always},             // Code Llama
    {"\xE2\x96\x81<EOT>", When::always},  //
    {"[e~[", When::if_special},           // MiniMax
    {"<EOT>", When::if_special},
    {"[EOT]", When::if_special},          // Kimi
    {"[EOS]", When::if_special},
    {"<eos>", When::if_special},
    {"</s>", When::if_special},
    // The prompt asked for the middle of a file; now the model begins to pad, or to write the next file.
    {"<|fim_pad|>", When::always},
    {"<fim-pad>", When::always},
    {"<fim_pad>", When::always},
    {"<|fim_repo|>", When::always},
    {"<|repo_name|>", When::always},
    {"<fim-repo>", When::always},
    {"<|file_sep|>", When::always},
    {"<reponame>", When::if_special},
    {"<REPO>", When::if_special},
    {"<PAD>", When::if_special},
    {"[PAD]", When::if_special},
};

}  // namespace

NamedEndings named_endings() noexcept {
  NamedEndings all{std::size(kEndings), 0};
  for (const Ending& ending : kEndings) all.bytes += ending.text.size();
  return all;
}

void mark_end_of_generation(Vocabulary& vocabulary) noexcept {
  for (const auto& [text, when] : kEndings) {
    const std::uint32_t id = vocabulary.find(text);
    if (id == kNoToken) continue;
    if (text == "</s>" && vocabulary.find(kToolResponse) != kNoToken) continue;  // Gemma 4 has HTML's tags as tokens
    const TokenType type = vocabulary.type(id);
    const bool special = type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown;
    if (when == When::if_special && !special) continue;
    vocabulary.set_ends_generation(id, true);
    vocabulary.set_type(id, TokenType::control);
  }
  // gpt-oss and Solar close a part of a message with <|end|>, and go on.
  const auto has = [&](std::string_view text) { return vocabulary.find(text) != kNoToken; };
  const std::uint32_t end = vocabulary.find("<|end|>");
  const bool call = has("<|call|>") || has("<|calls|>");
  if (end != kNoToken && end != vocabulary.eos() && call && (has("<|return|>") || has("<|flush|>"))) {
    vocabulary.set_ends_generation(end, false);
  }
}

}  // namespace tessera::detail
