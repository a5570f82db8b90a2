// Chat templates: from a conversation to what the model reads. A template is a Jinja program that came with the model;
// ours is evaluated as transformers does it (jinja2's ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks), by an
// evaluator without I/O whose work, memory and output are bounded. docs/chat.md says what of Jinja there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/message.hpp>
#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/files/settings.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

// Where rendered text came from. The template's own text may name control tokens ("<|im_start|>"); what came from a
// message, a tool or a template argument is text, whatever the template did to it.
enum class TextOrigin : std::uint8_t { from_template = 0, from_message = 1 };

struct RenderedSpan {
  std::string text;
  TextOrigin origin = TextOrigin::from_template;
  bool operator==(const RenderedSpan&) const = default;
};

struct RenderedText {
  std::vector<RenderedSpan> spans;  // none is empty, neighbours differ in origin
  [[nodiscard]] std::string text() const;

  // The spans' tokens. Control tokens are found in template text only, and only where the whole name is the template's;
  // all text between two of them is encoded as one, so where no message holds a control token's name, the tokens are
  // those of text() with Special::parse. No BOS or EOS is added: templates write them.
  [[nodiscard]] Result<std::vector<Token>> encode(const Tokenizer& tokenizer) const noexcept;
};

// A date and time as the host's clock shows it, for templates that print today's.
struct LocalTime {
  int year = 1970;
  int month = 1;  // 1 to 12
  int day = 1;    // 1 to 31
  int hour = 0, minute = 0, second = 0;
};

// What a template may use at most. Each grows with the size of the request (messages, tools, arguments), so that a
// long conversation has room and a small one that never ends is stopped soon.
struct RenderLimits {
  std::uint64_t steps = 500'000;            // evaluated nodes, copied KiB, ...; and 16 for each byte of the request
  std::uint64_t memory_bytes = 6u << 20;    // values at one time; and 24 for each byte of the request
  std::uint64_t output_bytes = 2u << 20;    // and 8 for each byte of the request
};

struct RenderOptions {
  std::optional<LocalTime> now{};  // for strftime_now(); none: a template that asks for the time is an error
  RenderLimits limits{};
};

// Control tokens' texts that templates know by name. What is not set is undefined in the template.
struct SpecialTexts {
  std::optional<std::string> bos{}, eos{}, pad{}, unk{};
  // Those of a model's vocabulary, from ModelSource::settings().
  [[nodiscard]] static Result<SpecialTexts> from_settings(const Settings& settings) noexcept;
};

// An immutable handle: copies share the parsed template. Every function may be called from several threads at once.
class ChatTemplate {
 public:
  ChatTemplate() noexcept = default;  // an empty handle (docs/headers.md)
  // Errors name the line and the construct: a syntax error, something of Jinja that is not implemented, or a template
  // over 1 MiB or over 30,000 parts.
  [[nodiscard]] static Result<ChatTemplate> parse(std::string_view source, SpecialTexts special = {}) noexcept;

  // From ModelSource::settings(): the model's template, or the one of a name ("tool_use"), with the special tokens of the
  // vocabulary. not_found if there is none.
  [[nodiscard]] static Result<ChatTemplate> from_settings(const Settings& settings, std::string_view name = {}) noexcept;

  // From the text of a tokenizer_config.json: chat_template, a string, an object of names, or a list of {name,
  // template}; the name "" is the one template or the one called "default".
  [[nodiscard]] static Result<ChatTemplate> from_tokenizer_config(std::string_view json,
                                                                  std::string_view name = {}) noexcept;

  // What the model is to read. Beside tool calls templates differ in what they take: content "" or null, arguments as an object
  // or as its text. The request is rendered as it stands; exception: where the template does not write calls of that form, they
  // are given in the form in which it does. A template that refuses (raise_exception) is invalid_argument with its own words; an
  // error's place is the template's line and construct; over_budget if a limit is reached.
  [[nodiscard]] Result<RenderedText> render(const ChatRequest& request, const RenderOptions& options = {}) const noexcept;
  // The same from the template's variables: an object of messages, tools, add_generation_prompt and whatever else the
  // template reads. bos_token, eos_token, pad_token and unk_token in it take the place of the template's own.
  [[nodiscard]] Result<RenderedText> render(const Json& variables, const RenderOptions& options = {}) const noexcept;

  [[nodiscard]] Status status() const noexcept;  // invalid_state: the handle is empty
  [[nodiscard]] std::string_view source() const noexcept;
  [[nodiscard]] const SpecialTexts& special_texts() const noexcept;

 private:
  struct State;
  struct Calls;
  [[nodiscard]] const Calls& calls() const;
  explicit ChatTemplate(std::shared_ptr<const State> state) noexcept;
  std::shared_ptr<const State> state_;
};

}  // namespace tessera
