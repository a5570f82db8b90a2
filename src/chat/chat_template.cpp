#include <tessera/chat/chat_template.hpp>

#include "chat/jinja/evaluator.hpp"
#include "chat/jinja/from_json.hpp"
#include "chat/jinja/parser.hpp"
#include "support/empty.hpp"
#include "support/error.hpp"

namespace tessera {

using namespace detail;

namespace {

constexpr std::size_t kLongestTemplate = 1 << 20;

Error to_error(jinja::Failure&& failure) {
  std::string place = "chat template";
  if (failure.line != 0) place += fmt::format(", line {}", failure.line);
  if (!failure.construct.empty()) place += ", " + failure.construct;
  return {failure.code, std::move(failure.message), std::move(place)};
}

std::vector<RenderedSpan> to_spans(const jinja::Text& text) {
  std::vector<RenderedSpan> spans;
  text.for_each([&](std::string_view piece, TextOrigin origin) { spans.push_back({std::string(piece), origin}); });
  return spans;
}

}  // namespace

struct [[gnu::visibility("hidden")]] ChatTemplate::State {
  std::string source;
  SpecialTexts special;
  jinja::Program program;
};

ChatTemplate::ChatTemplate(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, SpecialTexts special) noexcept {
  return guard([&]() -> Result<ChatTemplate> {
    if (source.size() > kLongestTemplate) {
      return error_at(ErrorCode::over_budget, "chat template", "a template of {} bytes; at most {} are read", source.size(),
                      kLongestTemplate);
    }
    try {
      return ChatTemplate(std::make_shared<const State>(
          State{std::string(source), std::move(special), jinja::parse(source)}));
    } catch (jinja::Failure& failure) {
      return to_error(std::move(failure));
    }
  });
}

Result<RenderedText> ChatTemplate::render(const Json& variables, const RenderOptions& options) const noexcept {
  return guard([&]() -> Result<RenderedText> {
    TESSERA_TRY_STATUS(status());
    if (variables.members() == nullptr) {
      return make_error(ErrorCode::invalid_argument, "a template's variables are an object with messages");
    }
    try {
      const std::uint64_t bytes = jinja::json_bytes(variables);
      const RenderLimits& limits = options.limits;
      jinja::Budget budget(limits.steps + 16 * bytes, limits.memory_bytes + 24 * bytes);
      jinja::Evaluator evaluator(state_->program, budget, options.now, limits.output_bytes + 8 * bytes);
      // What transformers gives where the caller gives nothing.
      evaluator.define("tools", jinja::Value::none());
      evaluator.define("documents", jinja::Value::none());
      evaluator.define("add_generation_prompt", jinja::Value::boolean(false));
      const auto define_special = [&](std::string_view name, const std::optional<std::string>& text) {
        if (text) evaluator.define(name, jinja::make_string(budget, *text));
      };
      define_special("bos_token", state_->special.bos);
      define_special("eos_token", state_->special.eos);
      define_special("pad_token", state_->special.pad);
      define_special("unk_token", state_->special.unk);
      for (const auto& [key, value] : *variables.members()) {
        const bool special = key == "bos_token" || key == "eos_token" || key == "pad_token" || key == "unk_token";
        if (special && value.string() != nullptr) {
          evaluator.define(key, jinja::make_string(budget, *value.string()));
        } else {
          evaluator.define(key, key == "messages" ? jinja::messages_from_json(budget, value)
                                                  : jinja::from_json(budget, value));
        }
      }
      return RenderedText{to_spans(evaluator.run())};
    } catch (jinja::Failure& failure) {
      return to_error(std::move(failure));
    }
  });
}

Result<RenderedText> ChatTemplate::render(const ChatRequest& request, const RenderOptions& options) const noexcept {
  return guard([&]() -> Result<RenderedText> {
    TESSERA_TRY_STATUS(status());
    return render(request.to_json(), options);
  });
}

Status ChatTemplate::status() const noexcept {
  if (state_ == nullptr) return empty_handle("ChatTemplate");
  return {};
}

std::string_view ChatTemplate::source() const noexcept { return state_ != nullptr ? state_->source : std::string_view(); }
const SpecialTexts& ChatTemplate::special_texts() const noexcept {
  static const SpecialTexts none;
  return state_ != nullptr ? state_->special : none;
}

std::string RenderedText::text() const {
  std::string whole;
  for (const RenderedSpan& span : spans) whole += span.text;
  return whole;
}

}  // namespace tessera
