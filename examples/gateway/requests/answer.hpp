// An answer as the gateway keeps it, and its form in OpenAI's API: one object, or a stream of events.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/json/json.hpp>

#include "requests/question.hpp"

namespace gateway {

struct Answer {
  std::string text{}, model{}, finish_reason{"stop"};
  std::uint64_t prompt_tokens = 0, completion_tokens = 0;
  // True if `text` is the whole answer: there are no tool calls and no reasoning beside the text, and the answer did not break off.
  bool is_plain = false;
};

// Reads an answer's object. nullopt: the object has no choice.
[[nodiscard]] std::optional<Answer> read_answer(Api api, const tessera::Json& object);

// Writes an answer as one object, or as the events of a stream (with the last "data: [DONE]").
[[nodiscard]] std::string to_object(Api api, const Answer& answer);
[[nodiscard]] std::string to_events(Api api, const Answer& answer, bool with_usage);

// Joins the events of a stream to one answer, while the events pass to the client.
class EventReader {
 public:
  explicit EventReader(Api api) : api_(api) {}
  // Takes bytes of a model's stream as they come, and calls `pass` with each complete event, its empty line included. Exception: if
  // `with_usage` is false, an event that has only the usage is not passed.
  void add(std::string_view bytes, bool with_usage, const std::function<void(std::string)>& pass);
  [[nodiscard]] bool ended() const noexcept { return ended_; }  // [DONE] has come
  [[nodiscard]] const Answer& answer() const noexcept { return answer_; }

 private:
  // Reads the data of an event. Returns whether the event has only the usage.
  bool take(std::string_view data);

  Api api_;
  std::string unread_;
  Answer answer_;
  bool ended_ = false, has_more_ = false;  // has_more_: tool calls, reasoning, several choices
};

}  // namespace gateway
