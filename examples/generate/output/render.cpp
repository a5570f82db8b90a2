// --render: shows the text that the chat template makes of a conversation. Needs no weights.
#include <fmt/format.h>

#include <tessera/chat/chat_template.hpp>

#include "chat/chat_input.hpp"
#include "failure.hpp"
#include "model.hpp"
#include "modes.hpp"
#include "output/output.hpp"
#include "output/terminal.hpp"
#include "prompt.hpp"

using tessera::ChatTemplate;
using tessera::Json;

namespace {

// Returns the variables of the template, from a file with an object or a list of messages.
Json read_variables(const Options& options) {
  Json variables = read_json(options.render_file);
  if (variables.elements() != nullptr) {
    Json messages = std::exchange(variables, Json::object());
    variables.set("messages", std::move(messages));
    variables.set("add_generation_prompt", true);
  }
  if (variables.members() == nullptr || variables.find("messages") == nullptr) {
    throw Failure(tessera::ErrorCode::invalid_argument,
                  fmt::format("{}: an object with \"messages\" was expected", options.render_file));
  }
  if (options.tools_file) variables.set("tools", read_json(*options.tools_file));
  return variables;
}

ChatTemplate open_template(const Options& options) {
  if (!options.template_file) return value(ChatTemplate::from_settings(open_model(options)->settings()));
  const std::string source = read_file(*options.template_file);
  if (!options.model) return value(ChatTemplate::parse(source));
  return value(ChatTemplate::parse(source, value(tessera::SpecialTexts::from_settings(open_model(options)->settings()))));
}

}  // namespace

int render_conversation(const Options& options) {
  const Json variables = read_variables(options);
  auto request = value(tessera::ChatRequest::from_json(variables));
  request.add_generation_prompt = variables.find("add_generation_prompt") != nullptr && request.add_generation_prompt;
  const auto rendered = value(open_template(options).render(request, {.now = local_time()}));
  const bool json = options.output == OutputKind::json;
  if (!options.render_tokens) {
    print(json ? text_json(rendered.text()) : rendered.text());
    return 0;
  }
  const auto tokens = value(rendered.encode(value(tessera::Tokenizer::from_settings(open_model(options)->settings()))));
  print(json ? tokens_json(tokens) : fmt::format("{}\n", fmt::join(tokens, " ")));
  return 0;
}
