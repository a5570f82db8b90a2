// Parses the tool calls in a model's output: the steps that all call syntaxes share. The header of a call is everything before its
// arguments: markers, and the name of the tool.
//
// If a header is malformed, its name ends at the first marker of the region, whichever marker that is. If the text up to there cannot be
// a name, the region is treated as text (without its markers) up to its end or up to the next call.
#include <algorithm>
#include <cctype>

#include "chat/output/blanks.hpp"
#include "chat/output/parser_state.hpp"

namespace tessera {
namespace {

using chat_output::kBlanks;
using chat_output::kLongestName;
using chat_output::trimmed;

// Returns whether the text is unusual enough to count as a marker wherever it occurs.
bool is_mark(std::string_view text) { return text.size() >= 4 && text.find_first_of("<[|") != text.npos; }

const Json* function_of(const Json& tool) {
  const Json* function = tool.find("function");
  return function != nullptr ? function : &tool;
}

}  // namespace

void OutputParser::State::skip_space() {
  const std::size_t at = std::min(buffer_.find_first_not_of(kBlanks), buffer_.size());
  if (at > 0) consume(at);
}

std::optional<bool> OutputParser::State::starts_with(std::string_view marker) const {
  if (buffer_.starts_with(marker)) return true;
  if (!last_ && marker.starts_with(buffer_)) return std::nullopt;
  return false;
}

void OutputParser::State::collect_marks() {
  marks_.clear();
  const auto add = [&](std::string_view text) {
    if (is_mark(trimmed(text))) marks_.push_back(trimmed(text));
  };
  if (!region_->keeps_open && !format_.header) std::ranges::for_each(region_->open, add);
  std::ranges::for_each(region_->close, add);
  const auto add_form = [&](const CallForm& form) {
    for (const std::string* text : {&form.open, &form.after_name, &form.close, &form.id_end, &form.key_open, &form.key_close,
                                    &form.value_open, &form.value_close, &form.mark}) {
      add(*text);
    }
  };
  if (format_.header) {
    add(format_.header->start);
    add(format_.header->channel);
    add(format_.header->end);
  }
  if (format_.recipients) marks_.push_back(format_.recipients->mark);
  add_form(region_->call);
  std::ranges::for_each(region_->also, add_form);
  std::ranges::for_each(format_.dropped, add);
  std::ranges::sort(marks_);
  marks_.erase(std::unique(marks_.begin(), marks_.end()), marks_.end());
}

// Returns whether the text can be the name of a tool. It can if one of the given tools has this name, or if the text contains neither
// white space nor a character that occurs in markers, in JSON's syntax or in calls.
bool OutputParser::State::is_name(std::string_view name) const {
  if (name.empty() || name.size() > kLongestName) return false;
  if (is_tool(name)) return true;
  return std::ranges::none_of(name, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || std::string_view("<>{}[]()|\"'`=,;\\").find(c) != std::string_view::npos;
  });
}

bool OutputParser::State::is_tool(std::string_view name) const {
  return std::ranges::any_of(options_.tools, [&](const Json& tool) {
    const Json* called = function_of(tool)->find("name");
    return called != nullptr && called->string() != nullptr && *called->string() == name;
  });
}

bool OutputParser::State::begins_tool(std::string_view word) const {
  return std::ranges::any_of(options_.tools, [&](const Json& tool) {
    const Json* called = function_of(tool)->find("name");
    return called != nullptr && called->string() != nullptr && called->string()->starts_with(word);
  });
}

// Returns whether the text can be the beginning of a name and of what the form allows after a name.
bool OutputParser::State::may_become_name(std::string_view text) const {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  if (text.size() > kLongestName) return false;
  const std::string_view word = text.substr(0, std::min(text.find_first_of(std::string(kBlanks) + form_->name_end), text.size()));
  if (begins_tool(word) || word.empty()) return true;
  // After a name only white space may follow, or characters that the form allows.
  const std::string_view behind = text.substr(word.size());
  const std::size_t next = behind.find_first_not_of(kBlanks);
  return is_name(word) && (next == behind.npos || form_->name_end.find(behind[next]) != std::string::npos);
}

// For formats in which a call has an id that contains the tool's name ("functions.add:0"): returns the tool's name (`add`) if the id is
// written with other separators, as some models and hosts do ("functions_add_0"). Returns an empty text if the id belongs to none of the
// given tools.
std::string OutputParser::State::tool_of_id(std::string_view name) const {
  std::string found;
  constexpr std::string_view kJoints = "_.:-";
  std::string_view prefix = form_->name_prefix;
  while (!prefix.empty() && kJoints.find(prefix.back()) != kJoints.npos) prefix.remove_suffix(1);
  for (const Json& tool : options_.tools) {
    const Json* called = function_of(tool)->find("name");
    if (called == nullptr || called->string() == nullptr || called->string()->size() <= found.size()) continue;
    std::string_view rest = name;
    if (!prefix.empty() && rest.starts_with(prefix) && !rest.starts_with(*called->string())) {
      rest.remove_prefix(prefix.size());
      if (!rest.empty() && kJoints.find(rest[0]) != kJoints.npos) rest.remove_prefix(1);
    }
    if (!rest.starts_with(*called->string())) continue;
    rest.remove_prefix(called->string()->size());
    if (!rest.empty() && kJoints.find(rest[0]) != kJoints.npos) rest.remove_prefix(1);
    if (std::ranges::all_of(rest, [](char c) { return c >= '0' && c <= '9'; })) found = *called->string();
  }
  return found;
}

const Json* OutputParser::State::call_schema() const {
  for (const Json& tool : options_.tools) {
    const Json* name = function_of(tool)->find("name");
    if (name != nullptr && *name == Json(calls_.back().name)) return function_of(tool)->find("parameters");
  }
  return nullptr;
}

void OutputParser::State::begin_call(std::string name, std::string id) {
  deltas.push_back({.kind = OutputDelta::Kind::call_begin, .call = calls_.size(), .name = name, .id = id});
  calls_.push_back({.name = std::move(name), .id = std::move(id), .arguments = {}});
  has_call_ = true;
  begin_arguments();
}

void OutputParser::State::begin_arguments() {
  phase_ = Phase::arguments;
  if (form_->syntax == CallSyntax::json) return;  // the JSON object that is being read continues
  first_parameter_ = true;
  in_value_ = streams_ = false;
  extent_ = {};
  value_ = {};
  held_.clear();
  if (form_->syntax == CallSyntax::parameters) add_arguments("{");
}

void OutputParser::State::add_arguments(std::string_view text) {
  if (text.empty()) return;
  calls_.back().arguments += text;
  deltas.push_back({.kind = OutputDelta::Kind::call_arguments, .text = std::string(text), .call = calls_.size() - 1});
}

void OutputParser::State::end_call() {
  Call& call = calls_.back();
  const auto arguments = Json::parse(call.arguments);
  call.broken |= !arguments || arguments->members() == nullptr;
  call.ended = true;
  deltas.push_back({.kind = OutputDelta::Kind::call_end, .call = calls_.size() - 1, .broken = call.broken});
  phase_ = Phase::between;
}

// Gives up the region's calls. The bytes that were read for a call, and the rest of the region, are treated as text.
void OutputParser::State::malformed() {
  broken_ = true;
  phase_ = Phase::between;
  give_back(std::exchange(object_, {}));
  if (region_->close.empty()) leave();
}

OutputParser::State::Progress OutputParser::State::step_calls() {
  switch (phase_) {
    case Phase::between: return step_between();
    case Phase::id: return step_id();
    case Phase::name: return step_name();
    case Phase::arguments: return step_arguments();
    case Phase::close: return step_close();
  }
  return Progress::waits;
}

OutputParser::State::Progress OutputParser::State::step_arguments() {
  switch (form_->syntax) {
    case CallSyntax::json: return step_json();
    case CallSyntax::named_json: return step_raw_arguments();
    case CallSyntax::parameters: return step_parameters();
    case CallSyntax::pythonic: return step_pythonic();
    case CallSyntax::braces: return step_braces();
    case CallSyntax::elements: return step_elements();
  }
  return Progress::waits;
}

// Reads the text between calls: the region's end marker, the region's opening marker once more, or the beginning of the next call.
OutputParser::State::Progress OutputParser::State::step_between() {
  skip_space();
  if (buffer_.empty()) return Progress::waits;
  bool unsure = false;
  for (const std::string& close : region_->close) {
    const auto here = starts_with(close);
    unsure |= !here.has_value();
    if (!here.value_or(false)) continue;
    consume(close.size());
    leave();
    return Progress::made;
  }
  for (const std::string& open : region_->open) {
    if (region_->keeps_open || format_.header || format_.recipients) break;
    const auto here = starts_with(open);
    unsure |= !here.has_value();
    if (!here.value_or(false)) continue;
    consume(open.size());
    has_call_ = false;
    return Progress::made;
  }
  if (unsure) return Progress::waits;
  const auto is_list = [](const CallForm& form) { return form.syntax == CallSyntax::json || form.syntax == CallSyntax::pythonic; };
  const bool has_list = is_list(region_->call) || std::ranges::any_of(region_->also, is_list);
  if (has_list && std::string_view(",[];").find(buffer_[0]) != std::string_view::npos) {
    consume(1);
    return Progress::made;
  }
  if (region_->close.empty() && has_call_) {  // in this format each call needs an opening marker of its own
    leave();
    return Progress::made;
  }
  const auto form = form_here();
  if (!form) return Progress::waits;
  if (*form == nullptr) {
    malformed();
    return Progress::made;
  }
  form_ = *form;
  switch (form_->syntax) {
    case CallSyntax::json:
      extent_ = {};
      name_.clear();
      id_.clear();
      early_arguments_.clear();
      held_.clear();
      object_.clear();
      in_value_ = streams_ = false;
      phase_ = Phase::arguments;
      return Progress::made;
    case CallSyntax::pythonic:
    case CallSyntax::braces:
      loose_ = {};
      phase_ = Phase::arguments;
      return Progress::made;
    default:
      consume(form_->open.size());
      id_.clear();
      phase_ = form_->id_end.empty() ? Phase::name : Phase::id;
      return Progress::made;
  }
}

// Returns the call form of the region with which the buffer begins. nullptr: the buffer begins with no call. nullopt: more bytes are needed to
// decide.
std::optional<const CallForm*> OutputParser::State::form_here() const {
  if (format_.header) return nullptr;  // the message's header has named the call already
  bool unsure = false;
  const auto begins = [&](const CallForm& form) {
    const char c = buffer_[0];
    switch (form.syntax) {
      case CallSyntax::json: return c == '{';
      case CallSyntax::pythonic: return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
      default: {
        const auto here = starts_with(form.open);
        unsure |= !here.has_value();
        return here.value_or(false) && (!form.open.empty() || is_name(buffer_.substr(0, 1)));
      }
    }
  };
  if (begins(region_->call)) return &region_->call;
  for (const CallForm& form : region_->also) {
    if (!unsure && begins(form)) return &form;
  }
  if (unsure) return std::nullopt;
  return nullptr;
}

OutputParser::State::Progress OutputParser::State::step_id() {
  Texts ends{form_->id_end};
  ends.insert(ends.end(), marks_.begin(), marks_.end());
  const Found found = find(ends);
  if (found.size == 0 && found.at <= kLongestName) return Progress::waits;
  const std::string_view id = trimmed(std::string_view(buffer_).substr(0, found.at));
  if (found.size == 0 || ends[found.index] != form_->id_end || (!id.empty() && !is_name(id))) {
    malformed();
    return Progress::made;
  }
  id_ = id;
  consume(found.at + found.size);
  phase_ = Phase::name;
  return Progress::made;
}

OutputParser::State::Progress OutputParser::State::step_name() {
  const CallForm& form = *form_;
  Texts ends;
  if (!form.after_name.empty()) ends.push_back(form.after_name);
  const std::size_t own = ends.size();
  ends.insert(ends.end(), marks_.begin(), marks_.end());
  const Found found = find(ends);
  const std::string_view header = std::string_view(buffer_).substr(0, found.at);
  if (found.size == 0) {
    if (may_become_name(header)) return Progress::waits;
    malformed();
    return Progress::made;
  }
  std::string_view written = header;
  if (!form.name_end.empty()) written = written.substr(0, std::min(written.find_first_of(form.name_end), written.size()));
  std::string name(trimmed(written)), id = id_;
  // Decides where the name ends. If the form has a marker after the name and the model has written it (`is_end`), the name ends there. If not,
  // the name ends at the next marker: where the parameters or elements begin, or where the region ends. Other syntaxes need the marker
  // (`may_end`).
  const bool is_end = found.index < own;
  const bool may_end = is_end || form.syntax == CallSyntax::parameters || form.syntax == CallSyntax::elements;
  if (!form.id_mark.empty()) {
    id = name;
    name = name.substr(0, name.rfind(form.id_mark));
  }
  if (name.starts_with(form.name_prefix)) name.erase(0, form.name_prefix.size());
  if (!form.id_mark.empty() && !is_tool(name)) {
    if (std::string tool = tool_of_id(id); !tool.empty()) name = std::move(tool);
  }
  // Besides the name, the whole header must be possible (may_become_name()). A header that arrives in pieces is given up at the first
  // byte that cannot belong to it; a header that arrives at once must have the same result.
  if (!may_end || !is_name(name) || !may_become_name(header)) {
    malformed();
    return Progress::made;
  }
  consume(is_end ? found.at + found.size : found.at);
  begin_call(std::move(name), std::move(id));
  return Progress::made;
}

OutputParser::State::Progress OutputParser::State::step_close() {
  // If the closing marker begins with a line end, the line end is left out of the search, because models may write other white space there.
  const std::string_view close = trimmed(form_->close);
  skip_space();
  const auto here = close.empty() ? std::optional(true) : starts_with(close);
  if (!here) return Progress::waits;
  if (*here) consume(close.size());
  end_call();
  return Progress::made;
}

}  // namespace tessera
