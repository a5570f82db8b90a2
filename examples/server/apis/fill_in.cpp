#include "apis/fill_in.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "api_error.hpp"

namespace server {

namespace {

// The control tokens with which a model fills a gap between two texts. Most models read a prompt of five parts: the token `before`, the
// text before the gap, the token `behind`, the text after the gap, the token `middle`. Then they write the text of the gap. Models without
// `middle` (Mistral's) read the text after the gap first, then the text before the gap, and continue the latter.
struct FillTokens {
  tessera::Token before, behind;
  std::optional<tessera::Token> middle;
};

std::optional<FillTokens> fill_tokens(const ServedModel& model) {
  const tessera::Tokenizer& tokenizer = model.tokenizer();
  const auto token = [&](tessera::Setting setting, std::initializer_list<const char*> names) -> std::optional<tessera::Token> {
    const auto id = model.engine().metadata().unsigned_integer(setting);
    if (id && *id < tokenizer.vocab_size()) return static_cast<tessera::Token>(*id);
    for (const char* name : names) {
      if (const auto found = tokenizer.find(name)) return found;
    }
    return std::nullopt;
  };
  using enum tessera::Setting;
  const auto before =
      token(fill_before_token, {"<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<PRE>", "▁<PRE>", "<｜fim▁begin｜>", "[PREFIX]"});
  const auto behind =
      token(fill_behind_token, {"<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<SUF>", "▁<SUF>", "<｜fim▁hole｜>", "[SUFFIX]"});
  if (!before || !behind) return std::nullopt;
  if (tokenizer.text(*before) == "[PREFIX]") return FillTokens{*before, *behind, std::nullopt};
  const auto middle = token(fill_middle_token, {"<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<MID>", "▁<MID>", "<｜fim▁end｜>"});
  if (!middle) return std::nullopt;
  return FillTokens{*before, *behind, *middle};
}

std::vector<tessera::Token> encoded(const ServedModel& model, const std::string& text) {
  return value_or_refuse(model.tokenizer().encode(text, {.bos = tessera::Bos::never}), "suffix");
}

// Encodes the text after the gap. Some tokenizers put a space in front of each text; here the space would be wrong, because this text
// continues the answer. To avoid the space, encodes a mark in front of the text and drops the mark's tokens, as the models' own tokenizers
// do. (The mark is a character that forms no token together with the next character.)
std::vector<tessera::Token> encoded_behind(const ServedModel& model, const std::string& text) {
  if (!model.tokenizer().adds_space_prefix()) return encoded(model, text);
  constexpr const char* kMark = "☺";
  const std::vector<tessera::Token> mark = encoded(model, kMark);
  std::vector<tessera::Token> both = encoded(model, kMark + text);
  if (both.size() < mark.size() || !std::equal(mark.begin(), mark.end(), both.begin())) return encoded(model, text);
  both.erase(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(mark.size()));
  return both;
}

}  // namespace

bool fills_in(const ServedModel& model) { return fill_tokens(model).has_value(); }

std::vector<tessera::Token> fill_in_prompt(const ServedModel& model, std::vector<tessera::Token> before, const std::string& behind) {
  const auto fill = fill_tokens(model);
  if (!fill) throw ApiError(400, "This model has no tokens to fill in between texts: leave suffix out.", "suffix");
  std::vector<tessera::Token> prompt;
  if (const auto bos = model.tokenizer().bos(); bos && !before.empty() && before.front() == *bos) {
    // Keeps the BOS of `before` only if the model's prompts begin with BOS. If `before` is nothing but BOS, the BOS proves nothing, because
    // the server turns an empty prompt into a BOS for every model. In this case the encoding of an empty text decides.
    const std::vector<tessera::Token> nothing = value_or_refuse(model.tokenizer().encode(""), "prompt");
    if (before.size() > 1 || (!nothing.empty() && nothing.front() == *bos)) prompt.push_back(*bos);
    before.erase(before.begin());
  }
  const std::vector<tessera::Token> rest = encoded_behind(model, behind);
  const auto add = [&](tessera::Token mark, const std::vector<tessera::Token>& text) {
    prompt.push_back(mark);
    prompt.insert(prompt.end(), text.begin(), text.end());
  };
  if (!fill->middle) add(fill->behind, rest);
  add(fill->before, before);
  if (fill->middle) {
    add(fill->behind, rest);
    prompt.push_back(*fill->middle);
  }
  return prompt;
}

}  // namespace server
