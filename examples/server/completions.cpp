// POST /v1/completions
#include <fmt/format.h>

#include "api.hpp"
#include "chat_fields.hpp"
#include "json_object.hpp"
#include "openai.hpp"

namespace server {

using tessera::FinishReason;
using tessera::Json;
using tessera::OutputDelta;

namespace {

struct Shape {
  std::string id, model;
  std::int64_t created;
  bool shows_logprobs;
  std::size_t top;                  // likeliest tokens beside each
  std::vector<std::string> echoes;  // [choices]: what stands in front of their texts; empty without echo

  [[nodiscard]] Object object() const {
    return Object().set("id", id).set("object", "text_completion").set("created", created).set("model", model);
  }
};

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, grown token by token.
class Logprobs {
 public:
  void add(const tessera::Tokenizer& tokenizer, const tessera::Piece& piece, std::size_t top, std::size_t offset) {
    tokens_.emplace_back(shown_token(tokenizer, piece.token));
    logprobs_.emplace_back(std::max(static_cast<double>(piece.logprob), -9999.0));
    Object likeliest;
    for (std::size_t i = 0; i < top && i < piece.top.size(); ++i) {
      likeliest.set(shown_token(tokenizer, piece.top[i].token), std::max(static_cast<double>(piece.top[i].logprob), -9999.0));
    }
    top_.push_back(top == 0 ? Json() : std::move(likeliest));
    offsets_.emplace_back(static_cast<std::int64_t>(offset));
  }
  [[nodiscard]] bool empty() const { return tokens_.empty(); }
  [[nodiscard]] Json take() {
    return Object()
        .set("tokens", std::exchange(tokens_, {}))
        .set("token_logprobs", std::exchange(logprobs_, {}))
        .set("top_logprobs", std::exchange(top_, {}))
        .set("text_offset", std::exchange(offsets_, {}));
  }

 private:
  Json::Array tokens_, logprobs_, top_, offsets_;
};

Json one_choice(std::size_t index, std::string text, Json logprobs, Json reason) {
  return Object()
      .set("text", std::move(text))
      .set("index", static_cast<std::int64_t>(index))
      .set("logprobs", std::move(logprobs))
      .set("finish_reason", std::move(reason));
}

class Whole final : public AnswerWriter {
 public:
  Whole(Shape shape, const tessera::Tokenizer& tokenizer, std::size_t choices, HttpReplyPtr reply)
      : shape_(std::move(shape)), tokenizer_(tokenizer), choices_(choices), reply_(std::move(reply)) {
    for (std::size_t i = 0; i < shape_.echoes.size(); ++i) choices_[i].text = shape_.echoes[i];
  }
  void token(std::size_t i, const tessera::Piece& piece) override {
    choices_[i].logprobs.add(tokenizer_, piece, shape_.top, choices_[i].text.size());
  }
  void add(std::size_t i, const OutputDelta& delta) override { choices_[i].text += delta.text; }
  void finish(std::size_t i, const Finish& finish) override { choices_[i].reason = openai_reason(finish); }
  void end(const Usage& usage) override {
    Json::Array list;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      Choice& c = choices_[i];
      list.push_back(one_choice(i, std::move(c.text), shape_.shows_logprobs ? c.logprobs.take() : Json(), c.reason));
    }
    reply_->send({.body = shape_.object().set("choices", std::move(list)).set("usage", openai_usage(usage)).set("system_fingerprint", "tessera").dump()});
  }
  void fail(const ApiError& error) override { reply_->send(to_response(error, ApiKind::openai)); }

 private:
  struct Choice {
    std::string text, reason;
    Logprobs logprobs;
  };
  Shape shape_;
  const tessera::Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
  HttpReplyPtr reply_;
};

class Streamed final : public AnswerWriter {
 public:
  Streamed(Shape shape, const tessera::Tokenizer& tokenizer, std::size_t choices, bool shows_usage, HttpReplyPtr reply)
      : shape_(std::move(shape)), tokenizer_(tokenizer), choices_(choices), shows_usage_(shows_usage), reply_(std::move(reply)) {}

  void begin() override {
    reply_->begin_stream(sse_response(), kSseIdle);
    for (std::size_t i = 0; i < shape_.echoes.size(); ++i) send(i, shape_.echoes[i]);
  }
  void token(std::size_t i, const tessera::Piece& piece) override { choices_[i].logprobs.add(tokenizer_, piece, shape_.top, choices_[i].written); }
  void add(std::size_t i, const OutputDelta& delta) override { send(i, delta.text); }
  void finish(std::size_t i, const Finish& finish) override { send(i, "", openai_reason(finish)); }
  void end(const Usage& usage) override {
    if (shows_usage_) reply_->write(sse(shape_.object().set("choices", Json::array()).set("usage", openai_usage(usage))));
    end_openai_stream(*reply_);
  }
  void fail(const ApiError& error) override { fail_openai_stream(*reply_, error); }

 private:
  struct Choice {
    std::size_t written = 0;  // bytes
    Logprobs logprobs;        // of tokens whose text has not come yet
  };
  void send(std::size_t i, const std::string& text, Json reason = {}) {
    Choice& c = choices_[i];
    c.written += text.size();
    Json logprobs;
    if (!c.logprobs.empty()) logprobs = c.logprobs.take();
    Object chunk = shape_.object().set("choices", Json::Array{one_choice(i, text, std::move(logprobs), std::move(reason))});
    if (shows_usage_) chunk.set("usage", Json());
    reply_->write(sse(chunk));
  }
  Shape shape_;
  const tessera::Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
  bool shows_usage_;
  HttpReplyPtr reply_;
};

struct Prompt {
  std::vector<tessera::Token> tokens;
  std::string text;  // for echo
};

Prompt of_ids(const Fields& fields, const ServedModel& model, const Json::Array& ids) {
  Prompt prompt;
  for (const Json& id : ids) {
    const std::int64_t* token = id.integer();
    if (token == nullptr || *token < 0 || static_cast<std::uint64_t>(*token) >= model.engine().spec().vocab_size) {
      fields.refuse("prompt", "This is a text, a list of texts, a list of token ids, or a list of such lists.");
    }
    prompt.tokens.push_back(static_cast<tessera::Token>(*token));
  }
  prompt.text = value_or_refuse(model.tokenizer().decode(prompt.tokens), "prompt");
  return prompt;
}

Prompt of_text(const ServedModel& model, const std::string& text) {
  Prompt prompt{.tokens = model.encode(text), .text = text};
  const auto bos = model.tokenizer().bos();
  if (prompt.tokens.empty() && bos) prompt.tokens.push_back(*bos);
  return prompt;
}

std::vector<Prompt> read_prompts(Fields& fields, const ServedModel& model, std::size_t most) {
  const Json* given = fields.any("prompt");
  std::vector<Prompt> prompts;
  if (given == nullptr) {
    prompts.push_back(of_text(model, ""));
  } else if (given->string() != nullptr) {
    prompts.push_back(of_text(model, *given->string()));
  } else if (given->elements() == nullptr || given->elements()->empty()) {
    fields.refuse("prompt", "This is a text, a list of texts, a list of token ids, or a list of such lists.");
  } else if (given->elements()->front().integer() != nullptr) {
    prompts.push_back(of_ids(fields, model, *given->elements()));
  } else {
    if (given->elements()->size() > most) fields.refuse("prompt", fmt::format("There may be {} prompts at most.", most));
    for (const Json& each : *given->elements()) {
      if (each.string() != nullptr) prompts.push_back(of_text(model, *each.string()));
      else prompts.push_back(of_ids(fields, model, each.elements() != nullptr ? *each.elements() : Json::Array{Json()}));
    }
  }
  return prompts;
}

}  // namespace

void completions(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call.request);
  Fields fields(body);
  check_model(fields, model);
  AnswerFields answer;
  read_drawing(fields, model, answer);
  std::vector<Prompt> prompts = read_prompts(fields, model, api.limits.prompts);
  answer.max_tokens = static_cast<std::size_t>(fields.integer("max_tokens", 1, 1 << 30).value_or(16));  // OpenAI's default
  answer.samples = static_cast<std::uint32_t>(fields.integer("n", 1, api.limits.samples).value_or(1));
  fields.only("best_of", static_cast<std::int64_t>(answer.samples));
  answer.stops = fields.texts("stop", api.limits.stops);
  std::erase(answer.stops, "");
  if (const auto logprobs = fields.integer("logprobs", 0, api.limits.logprobs)) {
    answer.shows_logprobs = true;
    answer.logprobs = static_cast<std::uint32_t>(*logprobs);
  }
  const bool echoes = fields.boolean("echo").value_or(false);
  if (echoes && answer.shows_logprobs) fields.refuse("echo", "The log-probabilities of prompts are not supported.");
  std::optional<tessera::Matcher> matcher;
  std::optional<AnswerForm> form;
  read_guided(fields, form);
  if (form) matcher = model.matcher(source_of(*form), form->field);
  bool shows_usage = false;
  const bool streams = read_stream(fields, shows_usage);
  fields.ignore({"user"});
  fields.done();

  Shape shape{new_id("cmpl-"), model.id(), unix_time(), answer.shows_logprobs, answer.logprobs, {}};
  std::vector<AnswerPlan> plans;
  for (Prompt& prompt : prompts) {
    if (echoes) shape.echoes.insert(shape.echoes.end(), answer.samples, prompt.text);
    plans.push_back({.request = make_request(model, api.limits, call.caller, answer, std::move(prompt.tokens), {.matcher = matcher}), .shows_logprobs = answer.shows_logprobs});
  }
  const std::size_t choices = plans.size() * answer.samples;
  std::unique_ptr<AnswerWriter> writer;
  if (streams) writer = std::make_unique<Streamed>(std::move(shape), model.tokenizer(), choices, shows_usage, call.reply);
  else writer = std::make_unique<Whole>(std::move(shape), model.tokenizer(), choices, call.reply);
  start_job(api.job, std::move(plans), std::move(writer), call.reply, call.on_answered);
}

}  // namespace server
