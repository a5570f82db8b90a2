// A chat template turns a conversation into the prompt that the model reads. The template is a Jinja program that comes with the model. The
// library evaluates templates as transformers does (jinja2's ImmutableSandboxedEnvironment with trim_blocks and lstrip_blocks). A template
// has no I/O, and limits on its work, memory and output. docs/reference/chat-templates.md lists the supported parts of Jinja.
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

// Says where a piece of rendered text comes from, so that text from a user cannot forge control tokens. from_template: "<|im_start|>" in
// the template's own text becomes the control token of that name. from_message (also text of tools and of template arguments):
// "<|im_start|>" is encoded as plain letters, even if the template has changed or joined that text.
enum class TextOrigin : std::uint8_t { from_template = 0, from_message = 1 };

struct RenderedSpan {
  std::string text;
  TextOrigin origin = TextOrigin::from_template;
  bool operator==(const RenderedSpan&) const = default;
};

struct RenderedText {
  std::vector<RenderedSpan> spans;  // no span is empty; neighbours differ in origin
  [[nodiscard]] std::string text() const;

  // Returns the tokens of all spans. If a control token's name consists of template text only, it becomes this control token; otherwise the
  // name is encoded as letters. All text between two control tokens is encoded together, whatever its origin. So if no byte of a message
  // belongs to a control token's name, the result is the same as encoding text() with Special::parse. Adds no BOS and no EOS, because
  // templates write them.
  // Errors: those of Tokenizer::encode().
  [[nodiscard]] Result<std::vector<Token>> encode(const Tokenizer& tokenizer) const noexcept;
};

// A date and time as the host's clock shows it, for templates that print the current date.
struct LocalTime {
  int year = 1970;
  int month = 1;  // 1 to 12
  int day = 1;    // 1 to 31
  int hour = 0, minute = 0, second = 0;
};

// Limits of one rendering. The true limit is the number below plus an allowance for each byte of the request (messages, tools, arguments).
// So a long conversation can be rendered, but a template that never ends is stopped soon if the request is small.
struct RenderLimits {
  // Units of work: 1 for each evaluated node of the template's syntax tree, 1 for each 128 bytes that are copied or searched, and so on.
  // The allowance is 16 for each byte of the request.
  std::uint64_t steps = 500'000;
  std::uint64_t memory_bytes = 6u << 20;    // bytes of all values that exist at one time. Plus 24 for each byte of the request
  std::uint64_t output_bytes = 2u << 20;    // bytes of rendered text. Plus 8 for each byte of the request
};

struct RenderOptions {
  std::optional<LocalTime> now{};  // for strftime_now(); nullopt: a template that asks for the time is an error
  RenderLimits limits{};
};

// Texts of the control tokens that templates know as bos_token, eos_token, pad_token and unk_token. nullopt: the template's variable is
// undefined.
struct SpecialTexts {
  std::optional<std::string> bos{}, eos{}, pad{}, unk{};
  // Returns the texts of a model's vocabulary. `settings` come from ModelSource::settings().
  [[nodiscard]] static Result<SpecialTexts> from_settings(const Settings& settings) noexcept;
};

// A parsed template: an immutable handle whose copies share the parsed program. Threads: several threads may call every function at once.
//
//   auto source = open_model("model.gguf");
//   auto form = ChatTemplate::from_settings((*source)->settings());
//   auto prompt = form->render({.messages = {{.role = "user", .content = "Hi"}}});
//   std::fputs(prompt->text().c_str(), stdout);
class ChatTemplate {
 public:
  ChatTemplate() noexcept = default;  // an empty handle (docs/headers.md)
  // Parses the text of a template. Errors (they name the line and the construct): invalid_argument, a syntax error; unsupported, a part of
  // Jinja that is not implemented; over_budget, the template has over 1 MiB or over 30,000 parts.
  [[nodiscard]] static Result<ChatTemplate> parse(std::string_view source, SpecialTexts special = {}) noexcept;

  // Parses the template among a model's settings (ModelSource::settings()), with the special tokens of the model's vocabulary. If you have
  // an engine, call chat_template_of(engine) (tessera/conversation/conversation.hpp) instead, because Engine::metadata() has no vocabulary.
  // `name` chooses one of a model's several templates ("tool_use", for example); empty: the main template. Errors: not_found, the settings
  // have no such template or no list of tokens; those of parse().
  [[nodiscard]] static Result<ChatTemplate> from_settings(const Settings& settings, std::string_view name = {}) noexcept;

  // Parses the template in the text of a tokenizer_config.json. The file's chat_template may be a string, an object whose keys are the
  // templates' names, or a list of {name, template}. An empty `name` chooses the only template, or the one called "default". Errors:
  // not_found; those of parse().
  [[nodiscard]] static Result<ChatTemplate> from_tokenizer_config(std::string_view json,
                                                                  std::string_view name = {}) noexcept;

  // Returns the text that the model is to read. The template gets the messages as they are, with two exceptions.
  // - Messages with tool calls: if the template can print calls only in another form, they get this form (content null instead of "",
  //   or "" instead of null; arguments as JSON text instead of an object).
  // - Reasoning is passed a second time, under the key that the template reads ("thinking", for example).
  // Errors: invalid_argument, the template called raise_exception() (the message is its text); over_budget, a limit is reached. The place
  // of an error is the template's line and construct.
  [[nodiscard]] Result<RenderedText> render(const ChatRequest& request, const RenderOptions& options = {}) const noexcept;
  // Renders the template with variables of your own: an object with messages, tools, add_generation_prompt and everything else that the
  // template reads. If the object has bos_token, eos_token, pad_token or unk_token, these replace the texts of special_texts().
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
