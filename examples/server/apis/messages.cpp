// POST /v1/messages and /v1/messages/count_tokens
#include <utility>

#include "answers/stream_progress.hpp"
#include "apis/api.hpp"
#include "apis/openai.hpp"
#include "fields/messages_fields.hpp"
#include "json_object.hpp"

namespace server {

using tessera::FinishReason;
using tessera::Json;
using tessera::OutputDelta;
using Kind = OutputDelta::Kind;

namespace {

const char* stop_reason(const Finish& finish) {
  if (finish.reason == FinishReason::max_tokens) return "max_tokens";
  if (!finish.stop.empty()) return "stop_sequence";
  return finish.has_calls ? "tool_use" : "end_turn";
}

// Returns the usage in Anthropic's form, which counts cached tokens separately: input_tokens is the rest of the prompt.
Json usage_of(const Usage& usage) {
  return Object()
      .set("input_tokens", static_cast<std::int64_t>(usage.prompt_tokens - usage.cached_tokens))
      .set("cache_creation_input_tokens", 0)
      .set("cache_read_input_tokens", static_cast<std::int64_t>(usage.cached_tokens))
      .set("output_tokens", static_cast<std::int64_t>(usage.completion_tokens))
      .set("service_tier", "standard");
}

// A block of the answer's content.
struct ContentBlock {
  enum class Kind { text, thinking, tool_use } kind;
  std::string text{};  // a call: its arguments
  std::string id{}, name{};
  bool broken = false;
};

Json block_json(const ContentBlock& block, bool is_begin) {
  switch (block.kind) {
    case ContentBlock::Kind::text: return Object().set("type", "text").set("text", block.text).set("citations", Json());
    case ContentBlock::Kind::thinking: return Object().set("type", "thinking").set("thinking", block.text).set("signature", "");
    case ContentBlock::Kind::tool_use: break;
  }
  Json input = Json::object();
  if (!is_begin) input = arguments_of(block.text);
  Object json = Object().set("type", "tool_use").set("id", block.id).set("name", block.name).set("input", std::move(input));
  if (block.broken) json.set(kBroken, true);
  return json;
}

class MessageWriter final : public AnswerWriter {
 public:
  MessageWriter(std::string model, std::size_t prompt_tokens, StreamFields stream, bool hides_reasoning, HttpReplyPtr reply)
      : id_(new_id("msg_")), model_(std::move(model)), streams_(stream.streams), shows_progress_(stream.shows_progress), hides_reasoning_(hides_reasoning), reply_(std::move(reply)) {
    begin_usage_.prompt_tokens = prompt_tokens;
  }

  void begin() override {
    if (!streams_) return;
    reply_->begin_stream(sse_response(), sse("ping", Object().set("type", "ping")));
    emit("message_start", Object().set("message", message(Json(), Json(), begin_usage_)));
    emit("ping", {});
  }
  [[nodiscard]] bool wants_progress() const override { return streams_; }
  void progress(const PromptProgress& progress) override {
    if (shows_progress_) emit("ping", Object().set("prompt_progress", to_json(progress)));
    else reply_->write(comments_.next(progress));
  }
  void add(std::size_t, const OutputDelta& delta) override {
    switch (delta.kind) {
      case Kind::text: return grow(ContentBlock::Kind::text, "text_delta", "text", delta.text);
      case Kind::reasoning: return grow(ContentBlock::Kind::thinking, "thinking_delta", "thinking", delta.text);
      case Kind::call_begin: return open({.kind = ContentBlock::Kind::tool_use, .id = delta.id, .name = delta.name});
      case Kind::call_arguments: return grow(ContentBlock::Kind::tool_use, "input_json_delta", "partial_json", delta.text);
      case Kind::call_end:
        if (open_) blocks_.back().broken = delta.broken;
        return close();
    }
  }
  void finish(std::size_t, const Finish& finish) override {
    close();
    reason_ = stop_reason(finish);
    if (!finish.stop.empty()) stop_ = finish.stop;
  }
  void end(const Usage& usage) override {
    if (!streams_) return reply_->send({.body = message(reason_, stop_, usage).dump()});
    emit("message_delta",
         Object().set("delta", Object().set("stop_reason", reason_).set("stop_sequence", stop_)).set("usage", usage_of(usage)));
    emit("message_stop", {});
    reply_->end_stream();
  }
  void fail(const ApiError& error) override {
    if (!streams_) return reply_->send(to_response(error, ApiKind::anthropic));
    reply_->write(sse("error", to_json(error, ApiKind::anthropic)));
    reply_->end_stream();
  }

 private:
  [[nodiscard]] Json message(Json reason, Json stop, const Usage& usage) const {
    Json::Array content;
    for (const ContentBlock& block : blocks_) content.push_back(block_json(block, false));
    return Object()
        .set("id", id_)
        .set("type", "message")
        .set("role", "assistant")
        .set("model", model_)
        .set("content", std::move(content))
        .set("stop_reason", std::move(reason))
        .set("stop_sequence", std::move(stop))
        .set("usage", usage_of(usage));
  }

  void emit(const char* type, const Object& fields) {
    if (!streams_) return;
    Json::Object all{{"type", type}};
    const Json given = fields;
    all.insert(all.end(), given.members()->begin(), given.members()->end());
    reply_->write(sse(type, Json(std::move(all))));
  }
  [[nodiscard]] Object at_block() const { return Object().set("index", static_cast<std::int64_t>(blocks_.size() - 1)); }

  void open(ContentBlock block) {
    close();
    blocks_.push_back(std::move(block));
    open_ = true;
    emit("content_block_start", at_block().set("content_block", block_json(blocks_.back(), true)));
  }
  void grow(ContentBlock::Kind kind, const char* type, const char* field, const std::string& text) {
    if (text.empty()) return;
    if (!open_ || blocks_.back().kind != kind) open({.kind = kind});
    if (kind == ContentBlock::Kind::thinking && hides_reasoning_) return;
    blocks_.back().text += text;
    emit("content_block_delta", at_block().set("delta", Object().set("type", type).set(field, text)));
  }
  void close() {
    if (!std::exchange(open_, false)) return;
    if (blocks_.back().kind == ContentBlock::Kind::thinking) {
      emit("content_block_delta", at_block().set("delta", Object().set("type", "signature_delta").set("signature", "")));
    }
    Object stop = at_block();
    if (blocks_.back().broken) stop.set(kBroken, true);
    emit("content_block_stop", stop);
  }

  std::string id_, model_;
  Usage begin_usage_;  // the usage known before the first token
  bool streams_, shows_progress_, hides_reasoning_;
  ProgressComments comments_;
  HttpReplyPtr reply_;
  std::vector<ContentBlock> blocks_;
  bool open_ = false;  // the last block has not ended
  Json reason_, stop_;
};

}  // namespace

void messages(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call, kMessages);
  Fields fields(body);
  pass_model(fields);
  ChatFields chat = read_messages_chat(fields, api.limits, call.notes);
  AnswerFields answer;
  answer.max_tokens = static_cast<std::size_t>(fields.need(fields.integer("max_tokens", 1, 1 << 30), "max_tokens"));
  read_drawing(fields, model, answer);
  answer.stops = read_stops(fields, "stop_sequences", api.limits);
  const StreamFields stream = read_stream(fields);
  fields.done(call.notes);

  const bool hides_reasoning = chat.hides_reasoning;
  std::vector<AnswerPlan> plans;
  plans.push_back(plan_chat(model, api.limits, call.caller, std::move(chat), answer, call.notes));
  auto writer = std::make_unique<MessageWriter>(call.caller.answering(model.id()), plans.front().request.prompt.size(), stream, hides_reasoning, call.reply);
  start_job(api.job, std::move(plans), std::move(writer), call.reply, call.on_answered, call.lease);
}

void count_tokens(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call, kCountTokens);
  Fields fields(body);
  pass_model(fields);
  ChatFields chat = read_messages_chat(fields, api.limits, call.notes);
  fields.done(call.notes);
  const std::size_t count = chat_prompt(model, chat).tokens.size();
  call.reply->send({.body = Object().set("input_tokens", static_cast<std::int64_t>(count)).dump()});
}

}  // namespace server
