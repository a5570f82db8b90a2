// Tool calls, in the syntaxes that CallSyntax names.
#include <algorithm>
#include <cctype>

#include "chat/output/loose_values.hpp"
#include "chat/output/parser_state.hpp"

namespace tessera {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin));
}

// What a raw member of an object says, if it is a string.
std::string string_of(std::string_view raw) {
  const auto value = Json::parse(raw);
  return value && value->string() != nullptr ? *value->string() : std::string();
}

}  // namespace

void OutputParser::State::skip_space(std::string_view more) {
  std::size_t at = 0;
  while (at < buffer_.size() && (kBlanks.find(buffer_[at]) != kBlanks.npos || more.find(buffer_[at]) != more.npos)) ++at;
  if (at > 0) consume(at);
}

std::optional<bool> OutputParser::State::starts_with(std::string_view marker) const {
  if (buffer_.starts_with(marker)) return true;
  if (!last_ && marker.starts_with(buffer_)) return std::nullopt;
  return false;
}

// Where a marker stands in the buffer; bytes that were looked at are not looked at again.
std::optional<std::size_t> OutputParser::State::search(std::string_view marker) {
  const std::size_t at = buffer_.find(marker, scanned_ - std::min(scanned_, marker.size()));
  if (at != buffer_.npos) return at;
  scanned_ = buffer_.size();
  return std::nullopt;
}

void OutputParser::State::begin_call(std::string name, std::string id) {
  deltas.push_back({.kind = OutputDelta::Kind::call_begin, .call = calls_.size(), .name = name, .id = id});
  calls_.push_back({.name = std::move(name), .id = std::move(id), .arguments = {}, .begun = true});
}

void OutputParser::State::add_arguments(std::string_view text) {
  if (text.empty()) return;
  calls_.back().arguments += text;
  deltas.push_back({.kind = OutputDelta::Kind::call_arguments, .text = std::string(text), .call = calls_.size() - 1});
}

// White space waits: behind the value it is no part of it.
void OutputParser::State::stream_arguments(std::string_view text) {
  held_ += text;
  const std::size_t end = held_.find_last_not_of(kBlanks) + 1;
  add_arguments(std::string_view(held_).substr(0, end));
  held_.erase(0, end);
}

void OutputParser::State::end_call() {
  calls_.back().ended = true;
  deltas.push_back({.kind = OutputDelta::Kind::call_end, .call = calls_.size() - 1});
}

void OutputParser::State::malformed() {
  broken_ = true;
  buffer_.insert(0, std::exchange(object_, {}));
  scanned_ = 0;
}

OutputParser::State::Progress OutputParser::State::step_calls() {
  switch (phase_) {
    case Phase::between: return step_between();
    case Phase::name: return step_name();
    case Phase::arguments:
      switch (region_->call.syntax) {
        case CallSyntax::json: return step_json();
        case CallSyntax::named_json: return step_raw_arguments();
        default: return step_parameters();
      }
    case Phase::close: return step_close();
  }
  return Progress::waits;
}

// The region's end, another opening of it, or the next call.
OutputParser::State::Progress OutputParser::State::step_between() {
  const CallSyntax syntax = region_->call.syntax;
  skip_space(syntax == CallSyntax::json || syntax == CallSyntax::pythonic ? ",[];" : "");
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
    if (region_->keeps_open) break;
    const auto here = starts_with(open);
    unsure |= !here.has_value();
    if (!here.value_or(false)) continue;
    consume(open.size());
    return Progress::made;
  }
  if (unsure) return Progress::waits;
  switch (syntax) {
    case CallSyntax::json:
      if (buffer_[0] != '{') break;
      extent_ = {};
      name_.clear();
      id_.clear();
      early_arguments_.clear();
      held_.clear();
      object_.clear();
      in_value_ = false;
      phase_ = Phase::arguments;
      return Progress::made;
    case CallSyntax::pythonic: return step_pythonic();
    case CallSyntax::braces: return step_braces();
    default: {
      const auto here = starts_with(region_->call.open);
      if (!here) return Progress::waits;
      if (!*here) break;
      consume(region_->call.open.size());
      phase_ = Phase::name;
      return Progress::made;
    }
  }
  malformed();
  return Progress::made;
}

// {"name": ..., "arguments": ...}, member by member.
OutputParser::State::Progress OutputParser::State::step_json() {
  const CallForm& form = region_->call;
  const bool begun = !calls_.empty() && !calls_.back().ended;
  bool call_begun = begun;
  std::string streamed;  // arguments that this step has read
  std::size_t at = 0;
  for (bool done = false; at < buffer_.size() && !done; ++at) {
    const char c = buffer_[at];
    const output::JsonExtent::Step step = extent_.take(c);
    const bool is_arguments = extent_.key() == form.arguments_key;
    if (step == output::JsonExtent::Step::value) {
      in_value_ = true;
      value_begin_ = object_.size();
    }
    done = step == output::JsonExtent::Step::end;
    if ((done || step == output::JsonExtent::Step::member) && in_value_) {
      in_value_ = false;
      if (call_begun && is_arguments) {
        stream_arguments(std::exchange(streamed, {}));
        held_.clear();
      }
      const std::string raw = trimmed(std::string_view(object_).substr(value_begin_));
      if (extent_.key() == form.name_key) name_ = string_of(raw);
      if (extent_.key() == form.id_key) id_ = string_of(raw);
      if (is_arguments && !call_begun) early_arguments_ = raw;
      // An id behind the name would come too late: the call begins with its arguments, or with the object's end.
    }
    if (in_value_ && is_arguments && !name_.empty()) {
      if (!call_begun) {
        begin_call(name_, id_);
        call_begun = true;
      }
      streamed += c;
    }
    object_ += c;
    if (!done) continue;
    if (!call_begun && name_.empty()) {  // an object that is no call
      consume(at + 1);
      malformed();
      return Progress::made;
    }
    if (!call_begun) begin_call(name_, id_);
    if (calls_.back().arguments.empty()) add_arguments(early_arguments_.empty() ? "{}" : early_arguments_);
    end_call();
    object_.clear();
    phase_ = Phase::between;
    consume(at + 1);
    return Progress::made;
  }
  if (call_begun) stream_arguments(streamed);
  consume(at);
  return Progress::waits;
}

OutputParser::State::Progress OutputParser::State::step_name() {
  const CallForm& form = region_->call;
  std::size_t end = 0, behind = 0;
  if (!form.after_name.empty()) {
    const auto at = search(form.after_name);
    if (!at) return Progress::waits;
    end = *at;
    behind = end + form.after_name.size();
  } else {
    // The name goes up to the first parameter, or to the region's end.
    std::vector<std::string_view> ends(region_->close.begin(), region_->close.end());
    ends.push_back(form.key_open);
    const Found found = find(ends);
    if (found.size == 0) return Progress::waits;
    end = behind = found.at;
  }
  std::string_view written = std::string_view(buffer_).substr(0, end);
  if (!form.name_end.empty()) written = written.substr(0, std::min(written.find_first_of(form.name_end), written.size()));
  std::string name = trimmed(written), id;
  if (!form.id_mark.empty()) {
    id = name;
    name = name.substr(0, name.rfind(form.id_mark));
  }
  if (name.starts_with(form.name_prefix)) name.erase(0, form.name_prefix.size());
  if (name.empty()) {
    malformed();
    return Progress::made;
  }
  consume(behind);
  begin_call(std::move(name), std::move(id));
  if (form.syntax == CallSyntax::parameters) add_arguments("{");
  first_parameter_ = true;
  in_value_ = false;
  extent_ = {};
  value_end_ = {};
  phase_ = Phase::arguments;
  return Progress::made;
}

// JSON as it stands.
OutputParser::State::Progress OutputParser::State::step_raw_arguments() {
  if (!in_value_) {
    skip_space();
    if (buffer_.empty()) return Progress::waits;
    if (buffer_[0] != '{' && buffer_[0] != '[') {
      end_call();
      malformed();
      return Progress::made;
    }
    in_value_ = true;
  }
  for (std::size_t at = 0; at < buffer_.size(); ++at) {
    if (extent_.take(buffer_[at]) != output::JsonExtent::Step::end) continue;
    add_arguments(std::string_view(buffer_).substr(0, at + 1));
    consume(at + 1);
    phase_ = Phase::close;
    return Progress::made;
  }
  add_arguments(buffer_);
  consume(buffer_.size());
  return Progress::waits;
}

OutputParser::State::Progress OutputParser::State::step_close() {
  // A close that begins with a line end is looked for as it is: what is in front of it may be white space too.
  const std::string close = trimmed(region_->call.close);
  skip_space();
  const auto here = close.empty() ? std::optional(true) : starts_with(close);
  if (!here) return Progress::waits;
  if (*here) consume(close.size());
  end_call();
  phase_ = Phase::between;
  return Progress::made;
}

const Json* OutputParser::State::parameter_schema(std::string_view key) const {
  for (const Json& tool : options_.tools) {
    const Json* function = tool.find("function");
    if (function == nullptr) function = &tool;
    const Json* name = function->find("name");
    if (name == nullptr || *name != Json(calls_.back().name)) continue;
    const Json* schema = function->find("parameters");
    if (schema != nullptr) schema = schema->find("properties");
    if (schema != nullptr) schema = schema->find(key);
    if (schema != nullptr) return schema;
  }
  return nullptr;
}

Json OutputParser::State::parameter_value(std::string_view key, std::string value, std::string_view attributes) const {
  if (attributes.find("string=\"true\"") != attributes.npos) return Json(std::move(value));
  const Json* schema = parameter_schema(key);
  const Json* type = schema != nullptr ? schema->find("type") : nullptr;
  if (type != nullptr && *type == Json("string")) return Json(std::move(value));
  auto parsed = Json::parse(value);
  if (!parsed && (value == "True" || value == "False")) return Json(value == "True");
  if (!parsed && value == "None") return Json();
  return parsed ? *std::move(parsed) : Json(std::move(value));
}

OutputParser::State::Progress OutputParser::State::step_parameters() {
  const CallForm& form = region_->call;
  skip_space();
  if (buffer_.empty()) return Progress::waits;
  const auto parameter = starts_with(form.key_open);
  if (parameter.value_or(false)) {
    // Nothing is said of a parameter before it is whole: only then is it known what its value is.
    if (!search(form.value_close)) return Progress::waits;
    const std::string_view buffer = buffer_;
    const std::size_t key_begin = form.key_open.size();
    const std::size_t key_end = buffer.find(form.key_close, key_begin);
    const std::size_t open = key_end == buffer.npos ? buffer.npos : buffer.find(form.value_open, key_end + form.key_close.size());
    const std::size_t value_begin = open == buffer.npos ? buffer.npos : open + form.value_open.size();
    if (value_begin == buffer.npos) return Progress::waits;
    const std::string key = trimmed(buffer.substr(key_begin, key_end - key_begin));
    // A string in JSON may hold the marker that ends the value. Of what is no JSON after all the first one counts.
    std::size_t search_from = value_begin;
    const Json* schema = parameter_schema(key);
    const Json* type = schema != nullptr ? schema->find("type") : nullptr;
    if (schema != nullptr && (type == nullptr || *type != Json("string"))) {
      const auto json_end = value_end_.find(buffer.substr(value_begin));
      if (!json_end && !last_) return Progress::waits;
      search_from += json_end.value_or(0);
    }
    const std::size_t value_end = buffer.find(form.value_close, search_from);
    if (value_end == buffer.npos) return Progress::waits;
    const std::size_t attributes = key_end + form.key_close.size();
    std::string value(buffer.substr(value_begin, value_end - value_begin));
    if (form.value_open.empty() && value.starts_with('\n')) value.erase(0, 1);
    if (form.value_open.empty() && value.ends_with('\n')) value.pop_back();
    const Json json = parameter_value(key, std::move(value), buffer.substr(attributes, open - attributes));
    add_arguments((first_parameter_ ? "" : ", ") + Json(key).dump().append(": ").append(json.dump()));
    first_parameter_ = false;
    value_end_ = {};
    consume(value_end + form.value_close.size());
    return Progress::made;
  }
  bool unsure = !parameter.has_value(), ends = false;
  if (!form.close.empty()) {
    const auto close = starts_with(form.close);
    unsure |= !close.has_value();
    if (close.value_or(false)) {
      consume(form.close.size());
      ends = true;
    }
  }
  for (const std::string& close : region_->close) {
    const auto here = starts_with(close);
    unsure |= !here.has_value();
    ends |= here.value_or(false);
  }
  if (!ends && unsure) return Progress::waits;
  add_arguments("}");
  end_call();
  phase_ = Phase::between;
  if (!ends) malformed();
  return Progress::made;
}

// name(key=value, ...)
OutputParser::State::Progress OutputParser::State::step_pythonic() {
  if (std::isalpha(static_cast<unsigned char>(buffer_[0])) == 0 && buffer_[0] != '_') {
    malformed();
    return Progress::made;
  }
  if (buffer_.find(')', scanned_) == buffer_.npos) {
    scanned_ = buffer_.size();
    return Progress::waits;
  }
  const auto size = output::python_call_size(buffer_);
  if (!size) {
    scanned_ = buffer_.size();
    return Progress::waits;
  }
  auto call = output::python_call(std::string_view(buffer_).substr(0, *size));
  if (!call) {
    malformed();
    return Progress::made;
  }
  consume(*size);
  begin_call(std::move(call->first), {});
  add_arguments(call->second.dump());
  end_call();
  return Progress::made;
}

// NAME{key:value}, up to the region's end.
OutputParser::State::Progress OutputParser::State::step_braces() {
  const CallForm& form = region_->call;
  const auto end = region_->close.empty() ? std::nullopt : search(region_->close[0]);
  if (!end) return Progress::waits;
  const std::string_view text = std::string_view(buffer_).substr(0, *end);
  const std::size_t brace = text.find('{');
  auto arguments = brace == text.npos ? std::nullopt : output::loose_value(text.substr(brace));
  if (!text.starts_with(form.open) || !arguments) {
    malformed();
    return Progress::made;
  }
  begin_call(trimmed(text.substr(form.open.size(), brace - form.open.size())), {});
  add_arguments(arguments->dump());
  end_call();
  consume(*end);
  return Progress::made;
}

}  // namespace tessera
