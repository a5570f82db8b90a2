// POST /v1/responses
#include <utility>

#include "answers/stream_progress.hpp"
#include "apis/api.hpp"
#include "apis/openai.hpp"
#include "fields/custom_tools.hpp"
#include "fields/responses_fields.hpp"

namespace server {

using tessera::FinishReason;
using tessera::Json;
using tessera::OutputDelta;
using Kind = OutputDelta::Kind;

namespace {

Json response_usage(const Usage& usage) {
  return Object()
      .set("input_tokens", static_cast<std::int64_t>(usage.prompt_tokens))
      .set("input_tokens_details", Object().set("cached_tokens", static_cast<std::int64_t>(usage.cached_tokens)).set("cache_write_tokens", 0))
      .set("output_tokens", static_cast<std::int64_t>(usage.completion_tokens))
      .set("output_tokens_details", Object().set("reasoning_tokens", static_cast<std::int64_t>(usage.reasoning_tokens)))
      .set("total_tokens", static_cast<std::int64_t>(usage.prompt_tokens + usage.completion_tokens));
}

// An item of the output.
struct Item {
  enum class Kind { message, reasoning, call, custom_call } kind;
  std::string id{};
  std::string text{};  // a call: its arguments; an ended custom call: its input
  std::string call_id{}, name{}, space{};
  Json::Array logprobs{};
  std::string status = "in_progress";
  bool broken = false;
};

bool has_part(const Item& item) { return item.kind == Item::Kind::message || item.kind == Item::Kind::reasoning; }

Json part_of(const Item& item) {
  if (item.kind == Item::Kind::reasoning) return Object().set("type", "reasoning_text").set("text", item.text);
  return Object().set("type", "output_text").set("text", item.text).set("annotations", Json::array()).set("logprobs", item.logprobs);
}

// Returns the item as JSON. `has_part`: the JSON has the text of a message or of reasoning, or the input of a custom call.
Json to_json(const Item& item, bool has_part) {
  Json::Array content;
  if (has_part) content.push_back(part_of(item));
  Object json = Object().set("id", item.id);
  switch (item.kind) {
    case Item::Kind::message: json.set("type", "message").set("role", "assistant").set("content", std::move(content)); break;
    case Item::Kind::reasoning:
      json.set("type", "reasoning").set("summary", Json::array()).set("content", std::move(content)).set("encrypted_content", Json());
      break;
    case Item::Kind::call:
      json.set("type", "function_call").set("call_id", item.call_id).set("name", item.name).set("arguments", item.text);
      if (!item.space.empty()) json.set("namespace", item.space);
      break;
    case Item::Kind::custom_call:
      json.set("type", "custom_tool_call").set("call_id", item.call_id).set("name", item.name).set("input", has_part ? item.text : "");
      if (!item.space.empty()) json.set("namespace", item.space);
      break;
  }
  json.set("status", item.status);
  if (item.broken) json.set(kBroken, true);
  return json;
}

class ResponseWriter final : public AnswerWriter {
 public:
  ResponseWriter(ResponseFields fields, const ServedModel& model, const Caller& caller, HttpReplyPtr reply)
      : id_(new_id("resp_")), model_(caller.answering(model.id())), created_(unix_time()), streams_(fields.streams), shows_progress_(fields.shows_progress), top_(fields.answer.logprobs),
        repeated_(std::move(fields.repeated)), tools_(std::move(fields.tools)), tokenizer_(model.tokenizer()), reply_(std::move(reply)) {}

  void begin() override {
    if (!streams_) return;
    reply_->begin_stream(sse_response(), kSseIdle);
    emit("response.created", Object().set("response", response("in_progress")));
    emit("response.in_progress", Object().set("response", response("in_progress")));
  }
  [[nodiscard]] bool wants_progress() const override { return streams_; }
  void progress(const PromptProgress& progress) override {  // as comments, unless return_progress asks for events
    if (shows_progress_) emit("response.in_progress", Object().set("response", response("in_progress")).set("prompt_progress", to_json(progress)));
    else reply_->write(comments_.next(progress));
  }
  void token(std::size_t, const tessera::Piece& piece) override { logprobs_.push_back(chat_logprob(tokenizer_, piece, top_)); }
  void add(std::size_t, const OutputDelta& delta) override {
    switch (delta.kind) {
      case Kind::text: return grow(Item::Kind::message, delta.text);
      case Kind::reasoning: return grow(Item::Kind::reasoning, delta.text);
      case Kind::call_begin:
        return open_call(delta);
      case Kind::call_arguments: return grow(items_.empty() ? Item::Kind::call : items_.back().kind, delta.text);
      case Kind::call_end:
        if (open_) items_.back().broken = delta.broken;
        return close(delta.broken ? "incomplete" : "completed");
    }
  }
  void finish(std::size_t, const Finish& finish) override {
    is_cut_ = finish.reason == FinishReason::max_tokens;
    if (items_.empty()) open({.kind = Item::Kind::message, .id = new_id("msg_")});  // an empty message
    close(is_cut_ ? "incomplete" : "completed");
  }
  void end(const Usage& usage) override {
    usage_ = response_usage(usage);
    const char* status = is_cut_ ? "incomplete" : "completed";
    if (!streams_) return reply_->send({.body = response(status).dump()});
    emit(is_cut_ ? "response.incomplete" : "response.completed", Object().set("response", response(status)));
    reply_->end_stream();
  }
  void fail(const ApiError& error) override {
    if (!streams_) return reply_->send(to_response(error, ApiKind::openai));
    const char* code = error.status == 429 ? "rate_limit_exceeded" : error.status < 500 ? "invalid_prompt" : "server_error";
    error_ = Object().set("code", code).set("message", error.what());
    emit("response.failed", Object().set("response", response("failed")));
    reply_->end_stream();
  }

 private:
  [[nodiscard]] Json response(const char* status) const {
    Json::Array output;
    for (const Item& item : items_) output.push_back(to_json(item, true));
    const Json repeated = repeated_;
    Json::Object all{{"id", id_},
                     {"object", "response"},
                     {"created_at", created_},
                     {"completed_at", std::string_view(status) == "completed" ? Json(unix_time()) : Json()},
                     {"status", status},
                     {"error", error_},
                     {"incomplete_details", is_cut_ ? Json(Object().set("reason", "max_output_tokens")) : Json()},
                     {"model", model_},
                     {"output", std::move(output)},
                     {"usage", usage_}};
    all.insert(all.end(), repeated.members()->begin(), repeated.members()->end());
    return all;
  }

  void emit(const char* type, const Object& fields) {
    if (!streams_) return;
    Json::Object all{{"type", type}, {"sequence_number", sequence_++}};
    const Json given = fields;
    all.insert(all.end(), given.members()->begin(), given.members()->end());
    reply_->write(sse(type, Json(std::move(all))));
  }
  [[nodiscard]] Object at_item() const {
    return Object().set("item_id", items_.back().id).set("output_index", static_cast<std::int64_t>(items_.size() - 1));
  }
  [[nodiscard]] Object at_part() const { return at_item().set("content_index", 0); }
  [[nodiscard]] Object whole_item(bool has_part) const {
    return Object().set("output_index", static_cast<std::int64_t>(items_.size() - 1)).set("item", to_json(items_.back(), has_part));
  }

  void open_call(const OutputDelta& delta) {
    const ResponseTools::Tool* tool = tools_.find(delta.name);
    const bool is_custom = tool != nullptr && tool->is_custom;
    open({.kind = is_custom ? Item::Kind::custom_call : Item::Kind::call,
          .id = new_id(is_custom ? "ctc_" : "fc_"),
          .call_id = delta.id,
          .name = tool != nullptr ? tool->name : delta.name,
          .space = tool != nullptr ? tool->space : ""});
  }
  void open(Item item) {
    close("completed");
    items_.push_back(std::move(item));
    open_ = true;
    emit("response.output_item.added", whole_item(false));
    if (has_part(items_.back())) emit("response.content_part.added", at_part().set("part", part_of(items_.back())));
  }
  void grow(Item::Kind kind, const std::string& text) {
    if (text.empty()) return;
    if (!open_ || items_.back().kind != kind) open({.kind = kind, .id = new_id(kind == Item::Kind::message ? "msg_" : "rs_")});
    Item& item = items_.back();
    item.text += text;
    switch (kind) {
      case Item::Kind::message: {
        Json::Array logprobs = std::exchange(logprobs_, {});
        item.logprobs.insert(item.logprobs.end(), logprobs.begin(), logprobs.end());
        return emit("response.output_text.delta", at_part().set("delta", text).set("logprobs", std::move(logprobs)));
      }
      case Item::Kind::reasoning: logprobs_.clear(); return emit("response.reasoning_text.delta", at_part().set("delta", text));
      case Item::Kind::custom_call: logprobs_.clear(); return;  // sent when it is complete, because the model writes the input in JSON
      case Item::Kind::call: logprobs_.clear(); return emit("response.function_call_arguments.delta", at_item().set("delta", text));
    }
  }
  void close(const char* status) {
    if (!std::exchange(open_, false)) return;
    Item& item = items_.back();
    item.status = status;
    switch (item.kind) {
      case Item::Kind::message:
        emit("response.output_text.done", at_part().set("text", item.text).set("logprobs", item.logprobs));
        break;
      case Item::Kind::reasoning: emit("response.reasoning_text.done", at_part().set("text", item.text)); break;
      case Item::Kind::call:
        if (item.text.empty()) item.text = "{}";
        emit("response.function_call_arguments.done", at_item().set("name", item.name).set("arguments", item.text));
        break;
      case Item::Kind::custom_call:
        item.text = custom_input(item.text);
        emit("response.custom_tool_call_input.delta", at_item().set("delta", item.text));
        emit("response.custom_tool_call_input.done", at_item().set("input", item.text));
        break;
    }
    if (has_part(item)) emit("response.content_part.done", at_part().set("part", part_of(item)));
    emit("response.output_item.done", whole_item(true));
  }

  std::string id_, model_;
  std::int64_t created_;
  bool streams_, shows_progress_;
  ProgressComments comments_;
  std::size_t top_;  // number of likeliest tokens to report with each token
  Object repeated_;
  ResponseTools tools_;
  const tessera::Tokenizer& tokenizer_;
  HttpReplyPtr reply_;
  std::vector<Item> items_;
  bool open_ = false;  // the last item has not ended
  Json::Array logprobs_;  // tokens whose text has not come yet
  bool is_cut_ = false;   // the answer was cut by max_output_tokens
  Json usage_, error_;
  std::int64_t sequence_ = 0;
};

}  // namespace

void responses(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call, kResponses);
  Fields fields(body);
  pass_model(fields);
  ResponseFields response = read_response(fields, model, api.limits, call.notes);
  std::vector<AnswerPlan> plans;
  plans.push_back(plan_chat(model, api.limits, call.caller, std::move(response.chat), response.answer, call.notes));
  auto writer = std::make_unique<ResponseWriter>(std::move(response), model, call.caller, call.reply);
  start_job(api.job, std::move(plans), std::move(writer), call.reply, call.on_answered, call.lease);
}

}  // namespace server
