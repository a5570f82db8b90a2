#include "requests/answer.hpp"

#include <atomic>
#include <chrono>

#include <fmt/format.h>

#include "json_object.hpp"
#include "requests/values.hpp"

namespace gateway {

using server::Object;
using tessera::Json;

namespace {

constexpr std::size_t kPiece = 64;  // about how many bytes of text an event of a replayed answer has

// Returns whether an answer may be cached: the model ended its text itself, or the text has the length that its request allows. A text of
// the allowed length can be cached too, because only requests with the same limit of length get it.
bool is_whole(std::string_view finish_reason) { return finish_reason == "stop" || finish_reason == "length"; }

std::int64_t now_seconds() { return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string new_id(Api api) {
  static std::atomic<std::uint64_t> last{static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())};
  return fmt::format("{}-gw{:x}", api == Api::chat ? "chatcmpl" : "cmpl", ++last);
}

Json count(std::uint64_t n) { return static_cast<std::int64_t>(n); }

Json usage_of(const Answer& answer) {
  return Object()
      .set("prompt_tokens", count(answer.prompt_tokens))
      .set("completion_tokens", count(answer.completion_tokens))
      .set("total_tokens", count(answer.prompt_tokens + answer.completion_tokens));
}

void read_usage(const Json& object, Answer& answer) {
  const Json* usage = object.find("usage");
  if (usage == nullptr) return;
  answer.prompt_tokens = count_at(*usage, "prompt_tokens");
  answer.completion_tokens = count_at(*usage, "completion_tokens");
}

// Returns whether a message or delta has content besides its text.
bool has_more(const Json& message) {
  const auto filled = [&](std::string_view key) {
    const Json* value = message.find(key);
    if (value == nullptr || value->is_null()) return false;
    if (value->elements() != nullptr) return !value->elements()->empty();
    return value->string() == nullptr || !value->string()->empty();
  };
  return filled("tool_calls") || filled("function_call") || filled("reasoning_content") || filled("reasoning") || filled("refusal") || filled("audio");
}

// Returns the length of the first piece of `text`, about kPiece bytes. The piece ends at the end of a character.
std::size_t piece_size(std::string_view text) {
  std::size_t size = std::min(kPiece, text.size());
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) ++size;
  return size;
}

}  // namespace

std::optional<Answer> read_answer(Api api, const Json& object) {
  const Json* choice = first_choice(object);
  if (choice == nullptr) return std::nullopt;
  Answer answer;
  if (const std::string* model = text_at(object, "model")) answer.model = *model;
  const std::string* finish = text_at(*choice, "finish_reason");
  answer.finish_reason = finish != nullptr ? *finish : "";
  const Json* message = api == Api::chat ? choice->find("message") : choice;
  const std::string* text = message != nullptr ? text_at(*message, api == Api::chat ? "content" : "text") : nullptr;
  if (text != nullptr) answer.text = *text;
  read_usage(object, answer);
  answer.is_plain = text != nullptr && is_whole(answer.finish_reason) && !has_more(*message) && object.find("choices")->elements()->size() == 1;
  return answer;
}

std::string to_object(Api api, const Answer& answer) {
  Object choice;
  choice.set("index", 0);
  if (api == Api::chat) choice.set("message", Object().set("role", "assistant").set("content", answer.text));
  else choice.set("text", answer.text);
  choice.set("logprobs", Json()).set("finish_reason", answer.finish_reason);
  return Object()
      .set("id", new_id(api))
      .set("object", api == Api::chat ? "chat.completion" : "text_completion")
      .set("created", now_seconds())
      .set("model", answer.model)
      .set("choices", Json::Array{Json(std::move(choice))})
      .set("usage", usage_of(answer))
      .dump();
}

std::string to_events(Api api, const Answer& answer, bool with_usage) {
  const std::string id = new_id(api);
  const std::int64_t created = now_seconds();
  std::string out;
  const auto event = [&](Json::Array choices, bool is_usage) {
    Object object;
    object.set("id", id).set("object", api == Api::chat ? "chat.completion.chunk" : "text_completion").set("created", created).set("model", answer.model);
    object.set("choices", std::move(choices));
    if (with_usage) object.set("usage", is_usage ? usage_of(answer) : Json());
    out += "data: " + object.dump() + "\n\n";
  };
  const auto choice = [&](Json content, Json finish) {
    Object object;
    object.set("index", 0);
    if (api == Api::chat) object.set("delta", std::move(content));
    else object.set("text", std::move(content));
    object.set("logprobs", Json()).set("finish_reason", std::move(finish));
    event({Json(std::move(object))}, false);
  };
  if (api == Api::chat) choice(Object().set("role", "assistant").set("content", ""), Json());
  for (std::string_view rest = answer.text; !rest.empty();) {
    const std::string_view piece = rest.substr(0, piece_size(rest));
    rest.remove_prefix(piece.size());
    choice(api == Api::chat ? Json(Object().set("content", piece)) : Json(piece), Json());
  }
  choice(api == Api::chat ? Json(Json::object()) : Json(""), answer.finish_reason);
  if (with_usage) event({}, true);
  return out + "data: [DONE]\n\n";
}

void EventReader::add(std::string_view bytes, bool with_usage, const std::function<void(std::string)>& pass) {
  for (const char c : bytes) {
    if (c != '\r') unread_ += c;
  }
  for (std::size_t end = unread_.find("\n\n"); end != std::string::npos; end = unread_.find("\n\n")) {
    std::string event = unread_.substr(0, end + 2);
    unread_.erase(0, end + 2);
    bool usage_only = false;
    for (std::string_view rest = event; !rest.empty();) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (!line.starts_with("data:")) continue;
      line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
      usage_only = take(line);
    }
    if (!usage_only || with_usage) pass(std::move(event));
  }
  answer_.is_plain = ended_ && !has_more_ && is_whole(answer_.finish_reason);
}

bool EventReader::take(std::string_view data) {
  if (data == "[DONE]") {
    ended_ = true;
    return false;
  }
  const auto object = Json::parse(data);
  if (!object) return false;
  if (const std::string* model = text_at(*object, "model")) answer_.model = *model;
  if (has(*object, "usage")) read_usage(*object, answer_);
  if (has(*object, "error")) has_more_ = true;
  const Json* choice = first_choice(*object);
  if (choice == nullptr) return has(*object, "usage");
  has_more_ = has_more_ || number_at(*choice, "index").value_or(0) != 0;
  if (const std::string* finish = text_at(*choice, "finish_reason")) answer_.finish_reason = *finish;
  const Json* delta = api_ == Api::chat ? choice->find("delta") : choice;
  if (delta == nullptr) return false;
  has_more_ = has_more_ || has_more(*delta);
  if (const std::string* text = text_at(*delta, api_ == Api::chat ? "content" : "text")) answer_.text += *text;
  return false;
}

}  // namespace gateway
