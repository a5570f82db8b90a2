// POST /v1/chat/completions
#include <algorithm>

#include <fmt/format.h>

#include "answers/stream_progress.hpp"
#include "apis/api.hpp"
#include "apis/openai.hpp"
#include "fields/chat_fields.hpp"
#include "fields/custom_tools.hpp"
#include "json_object.hpp"
#include "kv/kv_transfer.hpp"

namespace server {

using tessera::FinishReason;
using tessera::Json;
using tessera::OutputDelta;
using Kind = OutputDelta::Kind;

namespace {

struct Shape {
  std::string id, model;
  std::int64_t created;
  bool shows_logprobs;
  std::size_t top;  // number of likeliest tokens to report with each token
  std::vector<std::string> custom_tools;  // tools whose calls are a text

  [[nodiscard]] Object object(const char* kind) const {
    return Object().set("id", id).set("object", kind).set("created", created).set("model", model);
  }
  [[nodiscard]] bool is_custom(const std::string& tool) const { return std::ranges::find(custom_tools, tool) != custom_tools.end(); }
};

class WholeChat final : public AnswerWriter {
 public:
  WholeChat(Shape shape, const tessera::Tokenizer& tokenizer, std::size_t choices, HttpReplyPtr reply)
      : shape_(std::move(shape)), tokenizer_(tokenizer), choices_(choices), reply_(std::move(reply)) {}

  void token(std::size_t choice, const tessera::Piece& piece) override { choices_[choice].logprobs.push_back(chat_logprob(tokenizer_, piece, shape_.top)); }
  void add(std::size_t choice, const OutputDelta& delta) override {
    Choice& c = choices_[choice];
    switch (delta.kind) {
      case Kind::text: c.text += delta.text; break;
      case Kind::reasoning: c.reasoning += delta.text; break;
      case Kind::call_begin: c.calls.push_back({.id = delta.id, .name = delta.name, .arguments = {}}); break;
      case Kind::call_arguments: c.calls.at(delta.call).arguments += delta.text; break;
      case Kind::call_end: c.calls.at(delta.call).broken = delta.broken; break;
    }
  }
  void finish(std::size_t choice, const Finish& finish) override { choices_[choice].reason = openai_reason(finish); }
  void kv_transfer(Json params) override { kv_transfer_ = std::move(params); }
  void end(const Usage& usage) override {
    Json::Array list;
    for (std::size_t i = 0; i < choices_.size(); ++i) list.push_back(to_json(i));
    Object answer = shape_.object("chat.completion").set("choices", std::move(list)).set("usage", openai_usage(usage)).set("system_fingerprint", "tessera");
    if (!kv_transfer_.is_null()) answer.set("kv_transfer_params", std::move(kv_transfer_));
    reply_->send({.body = std::move(answer).dump()});
  }
  void fail(const ApiError& error) override { reply_->send(to_response(error, ApiKind::openai)); }

 private:
  struct Call {
    std::string id, name, arguments;
    bool broken = false;
  };
  struct Choice {
    std::string text, reasoning, reason;
    std::vector<Call> calls;
    Json::Array logprobs;
  };

  [[nodiscard]] Json to_json(std::size_t index) {
    Choice& c = choices_[index];
    Object message = Object().set("role", "assistant");
    message.set("content", c.text.empty() && !c.calls.empty() ? Json() : Json(std::move(c.text))).set("refusal", Json());
    if (!c.reasoning.empty()) message.set("reasoning_content", std::move(c.reasoning));
    Json::Array calls;
    for (Call& call : c.calls) {
      if (shape_.is_custom(call.name)) {
        const Object custom = Object().set("name", call.name).set("input", custom_input(call.arguments));
        Object shown = Object().set("id", call.id).set("type", "custom").set("custom", custom);
        if (call.broken) shown.set(kBroken, true);
        calls.push_back(std::move(shown));
        continue;
      }
      const Object function = Object().set("name", call.name).set("arguments", call.arguments.empty() ? "{}" : call.arguments);
      Object shown = Object().set("id", call.id).set("type", "function").set("function", function);
      if (call.broken) shown.set(kBroken, true);
      calls.push_back(std::move(shown));
    }
    if (!calls.empty()) message.set("tool_calls", std::move(calls));
    Json logprobs;
    if (shape_.shows_logprobs) logprobs = Object().set("content", std::move(c.logprobs)).set("refusal", Json());
    return Object()
        .set("index", static_cast<std::int64_t>(index))
        .set("message", std::move(message))
        .set("logprobs", std::move(logprobs))
        .set("finish_reason", c.reason);
  }

  Shape shape_;
  const tessera::Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
  Json kv_transfer_;
  HttpReplyPtr reply_;
};

class StreamedChat final : public AnswerWriter {
 public:
  // `running`: if each piece of the stream must show the usage so far (StreamFields::shows_running_usage), the usage at the beginning;
  // otherwise nullopt.
  StreamedChat(Shape shape, const tessera::Tokenizer& tokenizer, std::size_t choices, StreamFields stream, std::optional<Usage> running,
               HttpReplyPtr reply)
      : shape_(std::move(shape)), tokenizer_(tokenizer), logprobs_(choices), inputs_(choices), stream_(stream), running_(running), reply_(std::move(reply)) {}

  void begin() override {
    reply_->begin_stream(sse_response(), kSseIdle);
    for (std::size_t i = 0; i < logprobs_.size(); ++i) send(i, Object().set("role", "assistant").set("content", ""));
  }
  void count(std::uint64_t completion_tokens) override {
    if (running_) running_->completion_tokens = completion_tokens;
  }
  [[nodiscard]] bool wants_progress() const override { return true; }
  void progress(const PromptProgress& progress) override {
    if (stream_.shows_progress) send(0, Object(), Json(), to_json(progress));
    else reply_->write(comments_.next(progress));
  }
  void token(std::size_t choice, const tessera::Piece& piece) override { logprobs_[choice].push_back(chat_logprob(tokenizer_, piece, shape_.top)); }
  void add(std::size_t choice, const OutputDelta& delta) override {
    Object call = Object().set("index", static_cast<std::int64_t>(delta.call));
    switch (delta.kind) {
      case Kind::text: return send(choice, Object().set("content", delta.text));
      case Kind::reasoning: return send(choice, Object().set("reasoning_content", delta.text));
      case Kind::call_begin:
        call.set("id", delta.id);
        if (shape_.is_custom(delta.name)) {
          inputs_[choice] = {.is_open = true, .call = delta.call};
          call.set("type", "custom").set("custom", Object().set("name", delta.name).set("input", ""));
        } else {
          call.set("type", "function").set("function", Object().set("name", delta.name).set("arguments", ""));
        }
        break;
      case Kind::call_arguments:
        if (inputs_[choice].is_open) {
          inputs_[choice].arguments += delta.text;
          return;
        }
        call.set("function", Object().set("arguments", delta.text));
        break;
      case Kind::call_end:
        if (inputs_[choice].is_open) return end_custom(choice, delta.broken);
        if (!delta.broken) return;
        call.set("function", Object().set("arguments", "")).set(kBroken, true);
        break;
    }
    send(choice, Object().set("tool_calls", Json::Array{std::move(call)}));
  }
  void finish(std::size_t choice, const Finish& finish) override {
    end_custom(choice);
    send(choice, Object(), openai_reason(finish));
  }
  void end(const Usage& usage) override {
    if (stream_.shows_usage) {
      reply_->write(sse(shape_.object("chat.completion.chunk").set("choices", Json::array()).set("usage", openai_usage(usage))));
    }
    end_openai_stream(*reply_);
  }
  void fail(const ApiError& error) override { fail_openai_stream(*reply_, error); }

 private:
  // The state of one choice's call of a custom tool, while the model writes the call. The client gets the tool's input as plain text, but
  // the model writes it inside of JSON; so it is collected in `arguments`, and sent when it is complete.
  struct Input {
    bool is_open = false;
    std::size_t call = 0;
    std::string arguments{};
  };
  void end_custom(std::size_t choice, bool broken = false) {
    const Input input = std::exchange(inputs_[choice], {});
    if (!input.is_open) return;
    Object call = Object().set("index", static_cast<std::int64_t>(input.call)).set("custom", Object().set("input", custom_input(input.arguments)));
    if (broken) call.set(kBroken, true);
    send(choice, Object().set("tool_calls", Json::Array{call}));
  }
  void send(std::size_t choice, Json delta, Json reason = {}, Json progress = {}) {
    Json logprobs;
    if (!logprobs_[choice].empty()) logprobs = Object().set("content", std::exchange(logprobs_[choice], {})).set("refusal", Json());
    Object one = Object()
                   .set("index", static_cast<std::int64_t>(choice))
                   .set("delta", std::move(delta))
                   .set("logprobs", std::move(logprobs))
                   .set("finish_reason", std::move(reason));
    Object chunk = shape_.object("chat.completion.chunk").set("choices", Json::Array{std::move(one)});
    if (running_) chunk.set("usage", Object()
                                         .set("prompt_tokens", static_cast<std::int64_t>(running_->prompt_tokens))
                                         .set("completion_tokens", static_cast<std::int64_t>(running_->completion_tokens))
                                         .set("total_tokens", static_cast<std::int64_t>(running_->prompt_tokens + running_->completion_tokens)));
    else if (stream_.shows_usage) chunk.set("usage", Json());
    if (!progress.is_null()) chunk.set("prompt_progress", std::move(progress));
    reply_->write(sse(chunk));
  }

  Shape shape_;
  const tessera::Tokenizer& tokenizer_;
  std::vector<Json::Array> logprobs_;  // [choices]: tokens whose text has not come yet
  std::vector<Input> inputs_;            // [choices]
  StreamFields stream_;
  std::optional<Usage> running_;
  ProgressComments comments_;
  HttpReplyPtr reply_;
};

}  // namespace

void chat_completions(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call, kChat);
  Fields fields(body);
  pass_model(fields);
  ChatFields chat = read_chat(fields, api.limits, call.notes);
  AnswerFields answer;
  read_drawing(fields, model, answer);
  answer.max_tokens = read_most_tokens(fields, {"max_completion_tokens", "max_tokens", "n_predict"}).value_or(0);
  answer.samples = static_cast<std::uint32_t>(fields.integer("n", 1, api.limits.samples).value_or(1));
  answer.stops = read_stops(fields, "stop", api.limits);
  answer.shows_logprobs = fields.boolean("logprobs").value_or(false);
  answer.logprobs = static_cast<std::uint32_t>(fields.integer("top_logprobs", 0, api.limits.logprobs).value_or(0));
  if (answer.logprobs > 0 && !answer.shows_logprobs) fields.refuse("top_logprobs", "This field is for log-probabilities: set logprobs to true, or leave it out.");
  const StreamFields stream = read_stream(fields);
  const KvWish kv = read_kv_wish(fields, stream.streams);
  if (kv.exports) answer.max_tokens = 1;
  fields.done(call.notes);

  std::vector<std::string> custom_tools = chat.custom_tools;
  std::vector<AnswerPlan> plans;
  plans.push_back(plan_chat(model, api.limits, call.caller, std::move(chat), answer, call.notes));
  if (kv.exports) call.kv.export_prompt(plans.front(), model.engine().plan().page_tokens, call);
  Shape shape{new_id("chatcmpl-"), call.caller.answering(model.id()), unix_time(), answer.shows_logprobs, answer.logprobs, std::move(custom_tools)};
  std::unique_ptr<AnswerWriter> writer;
  std::optional<Usage> running;
  if (stream.shows_running_usage) running = Usage{.prompt_tokens = plans.front().request.prompt.size()};
  if (stream.streams) writer = std::make_unique<StreamedChat>(std::move(shape), model.tokenizer(), answer.samples, stream, running, call.reply);
  else writer = std::make_unique<WholeChat>(std::move(shape), model.tokenizer(), answer.samples, call.reply);
  if (!kv.imports) return start_job(api.job, std::move(plans), std::move(writer), call.reply, call.on_answered, call.lease);
  std::vector<tessera::Token> prompt = plans.front().request.prompt;
  const auto held = std::make_shared<std::pair<std::vector<AnswerPlan>, std::unique_ptr<AnswerWriter>>>(std::move(plans), std::move(writer));
  call.kv.import_prompt(api, call, kv, std::move(prompt), [&api, call, held] {
    start_job(api.job, std::move(held->first), std::move(held->second), call.reply, call.on_answered, call.lease);
  });
}

}  // namespace server
