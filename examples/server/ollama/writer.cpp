#include "writer.hpp"

#include <chrono>
#include <utility>
#include <vector>

#include "apis/openai.hpp"
#include "json_object.hpp"
#include "names.hpp"

namespace server::ollama {

using tessera::FinishReason;
using tessera::Json;
using tessera::OutputDelta;
using Kind = OutputDelta::Kind;

namespace {

// Text and calls that are not sent yet: the whole answer, or the content of a stream's next line.
struct Unsent {
  std::string text{}, thinking{};
  Json::Array calls{}, logprobs{};

  [[nodiscard]] bool empty() const { return text.empty() && thinking.empty() && calls.empty(); }
};

Object object_of(Form form, const std::string& model, Unsent part) {
  Object object = Object().set("model", model).set("created_at", time_now());
  Object inner;
  if (form == Form::chat) inner.set("role", "assistant");
  inner.set(form == Form::chat ? "content" : "response", std::move(part.text));
  if (!part.thinking.empty()) inner.set("thinking", std::move(part.thinking));
  if (!part.calls.empty()) inner.set("tool_calls", std::move(part.calls));
  if (form == Form::chat) {
    object.set("message", std::move(inner));
  } else {
    Json flat = std::move(inner);
    for (auto& [name, value] : *flat.members()) object.set(name, std::move(value));
  }
  if (!part.logprobs.empty()) object.set("logprobs", std::move(part.logprobs));
  return object;
}

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(std::max(seconds, 0.0) * 1e9); }

class Writer final : public AnswerWriter {
 public:
  Writer(AnswerShape shape, const tessera::Tokenizer& tokenizer, HttpReplyPtr reply)
      : shape_(std::move(shape)), tokenizer_(tokenizer), reply_(std::move(reply)) {}

  void begin() override {
    if (!shape_.streams) return;
    // An idle stream sends an object without text from time to time, because clients parse each line as an object.
    reply_->begin_stream({.type = "application/x-ndjson", .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}}, line_of({}));
  }
  void token(std::size_t, const tessera::Piece& piece) override { part_.logprobs.push_back(chat_logprob(tokenizer_, piece, shape_.top)); }
  void add(std::size_t, const OutputDelta& delta) override {
    switch (delta.kind) {
      case Kind::text: part_.text += delta.text; break;
      case Kind::reasoning: part_.thinking += delta.text; break;
      case Kind::call_begin:
        end_call();
        call_ = Call{delta.id, delta.name, {}, false};
        break;
      case Kind::call_arguments:
        if (call_) call_->arguments += delta.text;
        break;
      case Kind::call_end:
        if (call_) call_->broken = delta.broken;
        end_call();
        break;
    }
    if (shape_.streams && !part_.empty()) reply_->write(line_of(std::exchange(part_, {})));
  }
  void finish(std::size_t, const Finish& finish) override {
    end_call();  // ends a call that was cut with the answer
    reason_ = finish.reason == FinishReason::max_tokens ? "length" : "stop";
  }
  void end(const Usage& usage) override {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began_;
    const std::string last = object_of(shape_.form, shape_.model, std::move(part_))
                                 .set("done", true)
                                 .set("done_reason", reason_)
                                 .set("total_duration", nanoseconds(seconds.count()))
                                 .set("load_duration", 0)
                                 .set("prompt_eval_count", static_cast<std::int64_t>(usage.prompt_tokens))
                                 .set("prompt_eval_duration", nanoseconds(usage.reading_seconds))
                                 .set("eval_count", static_cast<std::int64_t>(usage.completion_tokens))
                                 .set("eval_duration", nanoseconds(usage.writing_seconds))
                                 .dump();
    if (!shape_.streams) return reply_->send({.body = last});
    reply_->write(last + "\n");
    reply_->end_stream();
  }
  void fail(const ApiError& error) override {
    if (!shape_.streams) return reply_->send(to_response(error, ApiKind::ollama));
    reply_->write(to_json(error, ApiKind::ollama).dump() + "\n");
    reply_->end_stream();
  }

 private:
  struct Call {
    std::string id, name, arguments;
    bool broken;
  };

  [[nodiscard]] std::string line_of(Unsent part) const { return object_of(shape_.form, shape_.model, std::move(part)).set("done", false).dump() + "\n"; }

  void end_call() {
    if (!call_) return;
    const Object function = Object().set("index", calls_++).set("name", call_->name).set("arguments", arguments_of(call_->arguments));
    Object shown = Object().set("id", call_->id).set("function", function);
    if (call_->broken) shown.set(kBroken, true);
    part_.calls.push_back(std::move(shown));
    call_.reset();
  }

  AnswerShape shape_;
  const tessera::Tokenizer& tokenizer_;
  HttpReplyPtr reply_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Unsent part_;
  std::optional<Call> call_;  // the call whose arguments are not whole yet
  std::int64_t calls_ = 0;
  std::string reason_ = "stop";
};

}  // namespace

std::unique_ptr<AnswerWriter> make_writer(AnswerShape shape, const tessera::Tokenizer& tokenizer, HttpReplyPtr reply) {
  return std::make_unique<Writer>(std::move(shape), tokenizer, std::move(reply));
}

HttpResponse loaded_response(Form form, const std::string& model, bool unloads) {
  return {.body = object_of(form, model, {}).set("done", true).set("done_reason", unloads ? "unload" : "load").dump()};
}

}  // namespace server::ollama
