#include "text/end_of_generation.hpp"

#include <iterator>

namespace tessera::detail {
namespace {

enum class When : std::uint8_t {
  always,     // a text that does not occur by chance
  if_special  // a text that may be ordinary ("</s>" is HTML): it ends a generation only if the vocabulary gives it a special type
};
struct Ending {
  std::string_view text;
  When when;
};

constexpr std::string_view kToolResponse = "<|tool_response>";

// The list is llama.cpp's (llama-vocab.cpp), where it grew with reports of models that did not stop.
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
    {"<turn|>", When::always},            // Gemma 4; it also ends where a tool's result is to follow
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
    // Tokens for filling in the middle of a file. If the model writes one of these tokens, the middle is complete, and what the model
    // writes next (padding, or the next file) does not belong to it.
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
    // Gemma 4's vocabulary has the tags of HTML as ordinary tokens.
    if (text == "</s>" && vocabulary.find(kToolResponse) != kNoToken) continue;
    const TokenType type = vocabulary.type(id);
    const bool special = type == TokenType::control || type == TokenType::user_defined || type == TokenType::unknown;
    if (when == When::if_special && !special) continue;
    vocabulary.set_ends_generation(id, true);
    vocabulary.set_type(id, TokenType::control);
  }
  // In gpt-oss and Solar <|end|> only closes a part of a message, and the model goes on. So it must not end the generation there.
  const auto has = [&](std::string_view text) { return vocabulary.find(text) != kNoToken; };
  const std::uint32_t end = vocabulary.find("<|end|>");
  const bool call = has("<|call|>") || has("<|calls|>");
  if (end != kNoToken && end != vocabulary.eos() && call && (has("<|return|>") || has("<|flush|>"))) {
    vocabulary.set_ends_generation(end, false);
  }
}

}  // namespace tessera::detail
