#include "fill_in.hpp"

#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "api_error.hpp"

namespace server {

namespace {

// The tokens between which a model fills in: what stands in front, what stands behind, and then what was asked for.
struct FillTokens {
  tessera::Token before, behind, middle;
};

std::optional<FillTokens> fill_tokens(const ServedModel& model) {
  const auto token = [&](std::initializer_list<const char*> keys, std::initializer_list<const char*> names) -> std::optional<tessera::Token> {
    for (const char* key : keys) {
      const auto id = model.engine().metadata().unsigned_integer(fmt::format("tokenizer.ggml.{}_token_id", key));
      if (id && *id < model.tokenizer().vocab_size()) return static_cast<tessera::Token>(*id);
    }
    for (const char* name : names) {
      if (const auto found = model.tokenizer().find(name)) return found;
    }
    return std::nullopt;
  };
  const auto before = token({"fim_pre", "prefix"}, {"<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<PRE>", "<｜fim▁begin｜>"});
  const auto behind = token({"fim_suf", "suffix"}, {"<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<SUF>", "<｜fim▁hole｜>"});
  const auto middle = token({"fim_mid", "middle"}, {"<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<MID>", "<｜fim▁end｜>"});
  if (!before || !behind || !middle) return std::nullopt;
  return FillTokens{*before, *behind, *middle};
}

}  // namespace

bool fills_in(const ServedModel& model) { return fill_tokens(model).has_value(); }

std::vector<tessera::Token> fill_in_prompt(const ServedModel& model, std::vector<tessera::Token> before, const std::string& behind) {
  const auto fill = fill_tokens(model);
  if (!fill) throw ApiError(400, "This model has no tokens to fill in between texts: leave suffix out.", "suffix");
  const auto bos = model.tokenizer().bos();
  before.insert(before.begin() + (bos && !before.empty() && before.front() == *bos ? 1 : 0), fill->before);
  before.push_back(fill->behind);
  const auto rest = value_or_refuse(model.tokenizer().encode(behind, {.bos = tessera::Bos::never}), "suffix");
  before.insert(before.end(), rest.begin(), rest.end());
  before.push_back(fill->middle);
  return before;
}

}  // namespace server
