// Parses calls whose arguments are JSON. If the arguments are an object, its bytes are passed on as they arrive. Otherwise the arguments
// are passed on when they are complete: nothing and null become {}, and a string that contains an object becomes this object.
#include <algorithm>

#include "chat/output/blanks.hpp"
#include "chat/output/parser_state.hpp"

namespace tessera {
namespace {

using chat_output::kBlanks;
using chat_output::trimmed;

// Returns the text of a JSON value, if it is a string; else an empty text.
std::string string_of(std::string_view raw) {
  const auto value = Json::parse(raw);
  return value && value->string() != nullptr ? *value->string() : std::string();
}

// Returns the arguments of a call whose text (`raw`) does not begin an object. If `raw` is empty, null or an empty string: {}. If it is a
// string that contains an object: this object. Otherwise: `raw`.
std::string as_arguments(const std::string& raw) {
  if (raw.empty() || raw == "null") return "{}";
  const std::string text = string_of(raw);
  if (raw == "\"\"") return "{}";
  const auto inner = Json::parse(text);
  return inner && inner->members() != nullptr ? std::string(trimmed(text)) : raw;
}

bool is_arguments_key(const std::string& key, const CallForm& form) {
  return key == form.arguments_key || form.name_key.empty() || (form.name_key == "name" && (key == "arguments" || key == "parameters"));
}

}  // namespace

// Passes the bytes of a call's arguments on as they arrive. White space at the end is held back until more bytes follow, because white
// space after the whole value does not belong to the arguments.
void OutputParser::State::stream_arguments(std::string_view text) {
  held_ += text;
  const std::size_t end = held_.find_last_not_of(kBlanks) + 1;
  add_arguments(std::string_view(held_).substr(0, end));
  held_.erase(0, end);
}

// Returns whether a marker of the region is at offset `at` of the buffer. If so, the arguments end there. nullopt: more bytes are needed to
// decide. Precondition: the offset is outside of JSON strings. (Outside of strings JSON has no '<', so a '<' can only begin a marker.)
std::optional<bool> OutputParser::State::ends_here(std::size_t at) const {
  const std::string_view rest = std::string_view(buffer_).substr(at);
  if (rest[0] != '<') return false;
  bool unsure = false;
  for (const std::string_view mark : marks_) {
    if (rest.starts_with(mark)) return true;
    unsure |= !last_ && mark.starts_with(rest);
  }
  if (unsure) return std::nullopt;
  return false;
}

// Reads a call that is an object, {"name": ..., "arguments": ...}, one member after the other.
OutputParser::State::Progress OutputParser::State::step_json() {
  const CallForm& form = *form_;
  bool begun = !calls_.empty() && !calls_.back().ended;
  std::string streamed;  // bytes of the arguments that were read since step_json() was called, and are not passed on yet
  const auto end = [&](std::size_t behind) {
    consume(behind);
    if (!begun && !is_name(name_)) {  // the object is not a call
      malformed();
      return Progress::made;
    }
    if (!begun) {
      begin_call(name_, id_);
      add_arguments(as_arguments(early_arguments_));
    }
    if (calls_.back().arguments.empty()) add_arguments("{}");
    object_.clear();
    end_call();
    return Progress::made;
  };
  for (std::size_t at = 0; at < buffer_.size(); ++at) {
    const char c = buffer_[at];
    if (!extent_.in_string()) {
      const auto ends = ends_here(at);
      if (!ends || *ends) {  // a marker ends the region before the object is complete
        if (begun) stream_arguments(streamed);
        else if (ends && in_value_ && is_arguments_key(extent_.key(), form)) early_arguments_ = trimmed(std::string_view(object_).substr(value_begin_));
        consume(at);
        return ends ? end(0) : Progress::waits;
      }
    }
    const output::JsonExtent::Place place = extent_.take(c);
    const bool is_arguments = is_arguments_key(extent_.key(), form);
    if (place == output::JsonExtent::Place::value && !in_value_) {  // a second colon within a value is not valid JSON, and is ignored
      in_value_ = true;
      value_begin_ = object_.size();
      if (form.name_key.empty() && name_.empty()) name_ = string_of('"' + extent_.key() + '"');
      streams_ = is_arguments && c == '{' && !begun && is_name(name_);
      if (streams_) {
        begin_call(name_, id_);
        begun = in_value_ = streams_ = true;
      }
    }
    const bool done = place == output::JsonExtent::Place::end;
    if ((done || place == output::JsonExtent::Place::member) && in_value_) {
      in_value_ = false;
      if (std::exchange(streams_, false)) {
        stream_arguments(std::exchange(streamed, {}));
        held_.clear();
      } else if (!begun) {
        const std::string raw(trimmed(std::string_view(object_).substr(value_begin_)));
        // If the arguments are streamed, the call has begun with them. An id that follows them comes too late.
        if (extent_.key() == form.name_key) name_ = string_of(raw);
        else if (extent_.key() == form.id_key) id_ = string_of(raw);
        else if (is_arguments) early_arguments_ = raw;
      }
    }
    if (streams_) streamed += c;
    object_ += c;
    if (done) return end(at + 1);
  }
  if (begun) stream_arguments(streamed);
  consume(buffer_.size());
  return Progress::waits;
}

// Reads arguments that stand by themselves up to the call's closing marker, even if they are not JSON.
OutputParser::State::Progress OutputParser::State::step_raw_arguments() {
  if (!in_value_) {
    skip_space();
    if (buffer_.empty()) return Progress::waits;
    if (buffer_[0] != '{') {
      const Found found = find(marks_, value_.scanned);
      value_.scanned = found.at;
      if (found.size == 0) return Progress::waits;
      add_arguments(as_arguments(std::string(trimmed(std::string_view(buffer_).substr(0, found.at)))));
      consume(found.at);
      phase_ = Phase::close;
      return Progress::made;
    }
    in_value_ = true;
  }
  for (std::size_t at = 0; at < buffer_.size(); ++at) {
    std::optional<bool> cut = false;
    if (!extent_.in_string()) cut = ends_here(at);
    if (!cut || *cut) {
      stream_arguments(std::string_view(buffer_).substr(0, at));
      consume(at);
      if (!cut) return Progress::waits;
      phase_ = Phase::close;
      return Progress::made;
    }
    if (extent_.take(buffer_[at]) != output::JsonExtent::Place::end) continue;
    stream_arguments(std::string_view(buffer_).substr(0, at + 1));
    consume(at + 1);
    phase_ = Phase::close;
    return Progress::made;
  }
  stream_arguments(buffer_);
  consume(buffer_.size());
  return Progress::waits;
}

}  // namespace tessera
