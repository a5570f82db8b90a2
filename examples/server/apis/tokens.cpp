// POST /tokenize, /detokenize and /apply-template
#include "apis/api.hpp"
#include "apis/openai.hpp"
#include "fields/chat_fields.hpp"
#include "json_object.hpp"

namespace server {

using tessera::Json;

namespace {

Json ids(const std::vector<tessera::Token>& tokens) {
  Json::Array list;
  for (const tessera::Token token : tokens) list.emplace_back(static_cast<std::int64_t>(token));
  return list;
}

}  // namespace

// Reads {"prompt" or "content": TEXT} or {"messages": [...]}, as vLLM and llama.cpp do.
void tokenize(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call, kTokenize);
  Fields fields(body);
  pass_model(fields);
  std::vector<tessera::Token> tokens;
  if (body.find("messages") != nullptr) {
    tokens = model.prompt(read_chat(fields, api.limits, call.notes).wish).tokens;
  } else {
    auto text = fields.text("prompt");
    if (auto content = fields.text("content"); content && !text) text = std::move(content);
    using tessera::Bos;
    using tessera::Special;
    const Bos bos = fields.boolean("add_special_tokens").value_or(true) ? Bos::as_model : Bos::never;
    const Special special = fields.boolean("parse_special").value_or(true) ? Special::parse : Special::as_text;
    tokens = value_or_refuse(model.tokenizer().encode(fields.need(std::move(text), "prompt"), {.bos = bos, .special = special}), "prompt");
  }
  fields.done(call.notes);
  call.reply->send({.body = Object()
                                .set("tokens", ids(tokens))
                                .set("count", static_cast<std::int64_t>(tokens.size()))
                                .set("max_model_len", static_cast<std::int64_t>(model.context()))
                                .dump()});
}

void detokenize(const Api& api, const Call& call) {
  const ServedModel& model = api.job.model;
  const Json body = body_of(call, kDetokenize);
  Fields fields(body);
  pass_model(fields);
  std::vector<tessera::Token> tokens;
  for (const Json& id : *fields.need(fields.list("tokens"), "tokens")) {
    const std::int64_t* token = id.integer();
    if (token == nullptr || *token < 0 || static_cast<std::uint64_t>(*token) >= model.tokenizer().vocab_size()) {
      fields.refuse("tokens", "These must be ids of tokens in the model's vocabulary.");
    }
    tokens.push_back(static_cast<tessera::Token>(*token));
  }
  fields.done(call.notes);
  const std::string text = value_or_refuse(model.tokenizer().decode(tokens, {.control = tessera::ControlText::show}), "tokens");
  call.reply->send({.body = Object().set("prompt", text).set("content", text).dump()});
}

// Answers GET /tokenizer_info: the tokenizer's properties in vLLM's fields, for clients that count tokens by /tokenize. Properties that the
// model does not have are null.
HttpResponse tokenizer_info(const Api& api) {
  const ServedModel& model = api.job.model;
  const tessera::Tokenizer& tokenizer = model.tokenizer();
  const auto text_of = [&](std::optional<tessera::Token> token) { return token ? Json(shown_token(tokenizer, *token)) : Json(); };
  return {.body = Object()
                      .set("tokenizer_class", "tessera")
                      .set("bos_token", text_of(tokenizer.bos()))
                      .set("eos_token", text_of(tokenizer.eos()))
                      .set("add_bos_token", tokenizer.adds_bos())
                      .set("add_eos_token", tokenizer.adds_eos())
                      .set("model_max_length", static_cast<std::int64_t>(model.context()))
                      .set("chat_template", model.has_template() ? Json(std::string(model.template_source())) : Json())
                      .dump()};
}

// Answers with the text of the prompt that the model would read for these messages.
void apply_template(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call, kTemplate);
  Fields fields(body);
  pass_model(fields);
  const std::string text = model.prompt(read_chat(fields, api.limits, call.notes).wish).text;
  fields.done(call.notes);
  call.reply->send({.body = Object().set("prompt", text).dump()});
}

}  // namespace server
