// Parts that begin with a recipient: >>>all, a line end and text; >>>NAME, a line end and a call's arguments.
#include "chat/output/blanks.hpp"
#include "chat/output/parser_state.hpp"

namespace tessera {
namespace {

using chat_output::kBlanks;
using chat_output::kLongestName;

}  // namespace

// Reads the recipient at the output's start: the prompt holds the first mark. An output that begins with a mark all the same is read as it
// is, and an output that begins with neither is text.
OutputParser::State::Progress OutputParser::State::step_begun_recipient() {
  const Recipients& form = *format_.recipients;
  if (buffer_.empty()) return Progress::waits;
  for (const std::string* text : {&form.mark, &form.text}) {
    const auto here = starts_with(*text);
    if (!here) return Progress::waits;
    if (!*here) continue;
    may_begin_with_header_ = false;
    if (text == &form.text) consume(text->size());
    return Progress::made;
  }
  const auto call = names_call(0);
  if (!call) return Progress::waits;
  may_begin_with_header_ = false;
  if (*call) enter_kind(RegionKind::calls);
  return Progress::made;
}

// A mark may stand in a text too (">>> print(1)" of a Python session), so the text behind it must be a call beyond doubt.
std::optional<bool> OutputParser::State::names_call(std::size_t at) const {
  const std::string_view rest = std::string_view(buffer_).substr(at);
  const std::size_t end = rest.find('\n');
  const std::string_view name = rest.substr(0, end);
  if (end == rest.npos) {
    if (last_ || name.size() > kLongestName) return false;
    const bool may_be_name = name.empty() || is_name(name) || begins_tool(name);
    return may_be_name ? std::optional<bool>() : false;
  }
  if (!is_name(name)) return false;
  if (is_tool(name)) return true;
  const std::size_t body = rest.find_first_not_of(kBlanks, end);
  if (body != rest.npos) return rest[body] == '{';
  return last_ ? std::optional(false) : std::nullopt;
}

}  // namespace tessera
