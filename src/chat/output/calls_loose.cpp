// Calls in the syntaxes of Python and of Gemma.
#include <algorithm>

#include "chat/output/parser_state.hpp"

namespace tessera {

// Reads a call in Python's syntax: name(key=value, ...).
OutputParser::State::Progress OutputParser::State::step_pythonic() {
  const auto end = loose_.find(buffer_);
  if (!end) return Progress::waits;
  auto call = end->broken ? std::nullopt : output::python_call(std::string_view(buffer_).substr(0, end->size));
  if (!call || !is_name(call->first)) {
    malformed();
    return Progress::made;
  }
  consume(end->size);
  begin_call(std::move(call->first), {});
  add_arguments(call->second.dump());
  end_call();
  return Progress::made;
}

// Reads a call in Gemma's syntax: NAME{key:value}.
OutputParser::State::Progress OutputParser::State::step_braces() {
  const auto end = loose_.find(buffer_);
  if (!end) return Progress::waits;
  const std::string_view text = std::string_view(buffer_).substr(0, end->size);
  const std::size_t brace = text.find('{');
  auto arguments = end->broken || brace == text.npos ? std::nullopt : output::loose_value(text.substr(brace));
  std::string name;
  if (brace != text.npos && text.starts_with(form_->open)) name = text.substr(form_->open.size(), brace - form_->open.size());
  while (!name.empty() && name.back() == ' ') name.pop_back();
  if (!arguments || arguments->members() == nullptr || !is_name(name)) {
    malformed();
    return Progress::made;
  }
  consume(end->size);
  begin_call(std::move(name), {});
  add_arguments(arguments->dump());
  end_call();
  return Progress::made;
}

}  // namespace tessera
