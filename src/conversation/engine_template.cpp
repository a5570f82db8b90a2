// The chat template of an engine's model.
#include <optional>
#include <string>
#include <string_view>

#include <tessera/conversation/conversation.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"

namespace tessera {

using namespace detail;

namespace {

// The template for a model that has none. It joins the messages without any markers of roles, so the answer simply continues the text.
constexpr std::string_view kPlain =
    "{{ bos_token }}{% for message in messages %}"
    "{% if not loop.first and message.role != 'assistant' %}{{ '\\n' }}{% endif %}"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content or [] %}{{ part.text }}{% endfor %}{% endif %}{% endfor %}";

// Returns the text of a special token, whose id is the setting `id_of`; nullopt if the model has no such token. The text is the
// tokenizer's, because an engine's metadata has no vocabulary.
std::optional<std::string> special_text(const Engine& engine, Setting id_of) {
  const auto id = engine.metadata().unsigned_integer(id_of);
  if (!id || *id >= engine.tokenizer().vocab_size()) return std::nullopt;
  return std::string(engine.tokenizer().text(static_cast<Token>(*id)));
}

}  // namespace

std::string_view plain_chat_template() noexcept { return kPlain; }

Result<ChatTemplate> chat_template_of(const Engine& engine, std::optional<std::string_view> source) noexcept {
  return guard([&]() -> Result<ChatTemplate> {
    if (engine.spec().vocab_size == 0) return empty_handle("Engine");
    if (!source && engine.metadata().has(Setting::chat_template)) {
      TESSERA_TRY(source, engine.metadata().string(Setting::chat_template));
    }
    return ChatTemplate::parse(source.value_or(kPlain), {.bos = special_text(engine, Setting::bos_token),
                                                         .eos = special_text(engine, Setting::eos_token),
                                                         .pad = special_text(engine, Setting::padding_token),
                                                         .unk = special_text(engine, Setting::unknown_token)});
  });
}

}  // namespace tessera
