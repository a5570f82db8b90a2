// Parses output whose parts begin with a recipient: >>>all and a line end, followed by text; or >>>NAME and a line end, followed by the
// arguments of a call of the tool NAME.
#include "chat/output/blanks.hpp"
#include "chat/output/parser_state.hpp"

namespace tessera {
namespace {

using chat_output::kBlanks;
using chat_output::kLongestName;

}  // namespace

// Reads the recipient at the beginning of the output, where its mark (>>>) is usually missing, because the prompt ends with the mark. If the
// output begins with the recipient of text ("all"), skips it. If the output begins with a tool's name, begins a call. If the output begins
// with a mark nevertheless, leaves the mark to step_text(), which reads marks. In all other cases the output begins with text.
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

// Returns whether, at offset `at` behind a mark, the name and the arguments of a call follow. This must be certain, because ordinary text
// may contain a mark too (">>> print(1)" in a Python session). nullopt: more bytes are needed to decide.
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
