// POST /api/generate: a text that the chat template shows as the user's turn, or that the model reads unchanged.
#include "answer_wish.hpp"
#include "apis/fill_in.hpp"
#include "ollama.hpp"
#include "writer.hpp"

namespace server::ollama {

using tessera::Json;

namespace {

struct Texts {
  std::string prompt, suffix, system;
  bool raw = false;  // the model reads the prompt unchanged
};

Texts read_texts(Fields& fields, const ServedModel& model) {
  Texts texts{.prompt = fields.text("prompt").value_or(""), .suffix = fields.text("suffix").value_or(""), .system = fields.text("system").value_or("")};
  texts.raw = fields.boolean("raw").value_or(false);
  if (texts.raw && !texts.system.empty()) fields.refuse("system", "With raw the prompt is all that the model reads: write the system's text into it.");
  // A model without a template reads texts, not turns.
  if (!texts.raw && !model.has_template() && !texts.system.empty()) texts.prompt = texts.system + "\n\n" + texts.prompt;
  texts.raw = texts.raw || !texts.suffix.empty() || !model.has_template();
  return texts;
}

AnswerPlan plan_text(ServedModel& model, const Api& api, const Call& call, const Texts& texts, const AnswerWish& wish) {
  std::optional<tessera::Matcher> matcher;
  if (wish.form) matcher = model.matcher(source_of(*wish.form), wish.form->field);
  auto tokens = model.encode(texts.prompt);
  const auto bos = model.tokenizer().bos();
  if (tokens.empty() && bos) tokens.push_back(*bos);
  if (!texts.suffix.empty()) tokens = fill_in_prompt(model, std::move(tokens), texts.suffix);
  return {.request = make_request(model, api.limits, call.caller, wish.drawing, std::move(tokens), {.matcher = std::move(matcher)}),
          .shows_logprobs = wish.drawing.shows_logprobs};
}

AnswerPlan plan_turn(ServedModel& model, const Api& api, const Call& call, const Texts& texts, const AnswerWish& wish) {
  ChatFields chat;
  auto& messages = chat.wish.request.messages;
  if (!texts.system.empty()) messages.push_back({.role = "system", .content = texts.system});
  messages.push_back({.role = "user", .content = texts.prompt});
  chat.form = wish.form;
  set_thinking(chat, wish.thinking);
  return plan_chat(model, api.limits, call.caller, std::move(chat), wish.drawing, call.notes);
}

}  // namespace

void generate(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call, kOllamaGenerate);
  Fields fields(body);
  const AnswerWish wish = read_answer_wish(fields, api, call);
  const Texts texts = read_texts(fields, model);
  fields.done(call.notes);
  if (texts.prompt.empty() && texts.suffix.empty()) {
    call.reply->send(loaded_response(Form::generate, wish.name, wish.unloads));
    return call.on_answered({});
  }
  std::vector<AnswerPlan> plans;
  plans.push_back(texts.raw ? plan_text(model, api, call, texts, wish) : plan_turn(model, api, call, texts, wish));
  auto writer = make_writer({.form = Form::generate, .model = wish.name, .streams = wish.streams, .shows_logprobs = wish.drawing.shows_logprobs, .top = wish.drawing.logprobs},
                            model.tokenizer(), call.reply);
  start_job(api.job, std::move(plans), std::move(writer), call.reply, call.on_answered, call.lease);
}

}  // namespace server::ollama
