#include "text/rules/word_pieces.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "text/rules/old_files.hpp"

namespace tessera::detail {

bool has_word_pieces(const Settings& settings) noexcept {
  const auto model = settings.find(Setting::tokenizer_model);
  const auto* name = model ? std::get_if<std::string_view>(&*model) : nullptr;
  return name != nullptr && *name == "bert";
}

// Undoes what converters to GGUF do with BERT's pieces, and makes a tokenizer.json. In GGUF a piece that begins a word has U+2581 in
// front, and a piece that continues a word lacks its "##". Control tokens (in brackets: "[CLS]") are unchanged.
Result<std::string> word_pieces_as_json(const Settings& settings) {
  constexpr std::string_view kWordStart = "\xE2\x96\x81";
  TESSERA_TRY(const ValueList tokens, settings.list(Setting::tokens));
  if (tokens.type() != ValueType::string) return error_at(ErrorCode::corrupt_file, settings.place(Setting::tokens), "expected a list of texts");
  std::string lines;
  lines.reserve(tokens.text_bytes() + 3 * tokens.size());
  bool has_capitals = false;  // capital letters mean that the model distinguishes case
  for (const std::string_view text : tokens.strings()) {
    if (text.find('\n') != std::string_view::npos) {
      return error_at(ErrorCode::corrupt_file, settings.place(Setting::tokens), "a word piece has a line break");
    }
    const bool is_control = text.starts_with('[') && text.ends_with(']');
    has_capitals |= !is_control && std::ranges::any_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (text.starts_with(kWordStart)) lines.append(text.substr(kWordStart.size()));
    else lines.append(is_control || text.empty() ? "" : "##").append(text);
    lines += '\n';
  }
  return bert_tokenizer_json(lines, !has_capitals);
}

}  // namespace tessera::detail
