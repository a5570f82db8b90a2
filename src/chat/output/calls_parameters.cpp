// Parses calls whose parameters are written between markers, one after the other.
//
// A value ends at its closing marker, if the next parameter, the end of the call or of the region, or nothing follows this marker. Otherwise
// the marker counts as a part of the value, which may be any text.
//
// If the model has left the closing marker out, the value ends where the next parameter begins (in formats that write values on lines of
// their own: only if the parameter begins a line), or at the end of the call or of the region, if another call or nothing follows there.
// Exception: if a closing marker was counted as a part of the value before, the value ends at the last closing marker.
//
// Parameters with a malformed key, and text between parameters, are left out. Then the call is reported as broken.
#include <algorithm>

#include "chat/output/blanks.hpp"
#include "chat/output/parser_state.hpp"
#include "chat/schema_types.hpp"

namespace tessera {
namespace {

using chat_output::kBlanks;
using chat_output::trimmed;
constexpr std::size_t kLongestKey = 512;  // limit in bytes, attributes included

std::size_t behind_space(std::string_view text, std::size_t at) { return std::min(text.find_first_not_of(kBlanks, at), text.size()); }

const Json* property_of(const Json* schema, std::string_view key) {
  if (schema != nullptr) schema = schema->find("properties");
  return schema != nullptr ? schema->find(key) : nullptr;
}

// Converts a parameter's text to a JSON value of a type that its schema allows (`types`, a sum of SchemaTypes). If the text cannot be
// read as a value, returns the text as a string. If the value's type is allowed, or strings are not allowed, returns the value. Otherwise
// returns the text as a string. Exception: a text in quotes keeps its quotes if a schema allows strings. Without a schema (`has_schema`
// is false) all types are allowed, so any text that looks like JSON is converted.
Json value_of(std::string text, unsigned types, bool has_schema) {
  if (types == SchemaTypes::kString) return Json(std::move(text));
  const std::string_view bare = trimmed(text);
  auto parsed = Json::parse(bare);
  if (!parsed && (bare == "True" || bare == "False")) parsed = Json(bare == "True");
  if (!parsed && bare == "None") parsed = Json();
  if (!parsed && (bare.starts_with('[') || bare.starts_with('{'))) {
    if (auto loose = output::python_value(bare)) parsed = *std::move(loose);
  }
  if (!parsed || !output::is_finite(*parsed)) return Json(std::move(text));
  const unsigned type = type_of_value(*parsed);
  const bool may_be_text = (types & SchemaTypes::kString) != 0;
  if (type == SchemaTypes::kString && has_schema && types != SchemaTypes::kAny && may_be_text) return Json(std::move(text));
  if ((types & type) != 0 || !may_be_text) return *std::move(parsed);
  return Json(std::move(text));
}

}  // namespace

// Reads the key of a parameter, from its opening marker at offset `at` up to where its value begins.
OutputParser::State::Key OutputParser::State::read_key(std::size_t at) const {
  const CallForm& form = *form_;
  const std::string_view buffer = buffer_;
  const auto waits = [&](std::size_t read) {
    return Key{.state = !last_ && read <= kLongestKey ? KeyState::waits : KeyState::malformed, .name = {}};
  };
  std::size_t begin = behind_space(buffer, at + form.key_open.size());
  while (buffer.substr(begin).starts_with(form.key_open)) begin = behind_space(buffer, begin + form.key_open.size());
  Texts ends{form.key_close};
  ends.insert(ends.end(), marks_.begin(), marks_.end());
  const Found found = find(ends, begin);
  if (found.size == 0) return waits(found.at - begin);
  Key key{.state = KeyState::malformed, .name = std::string(trimmed(buffer.substr(begin, found.at - begin)))};
  if (found.index != 0 || key.name.empty() || found.at - begin > kLongestKey || key.name.find('\n') != key.name.npos) return key;
  key.end = found.at + found.size;
  if (!form.value_open.empty()) {
    // Between key and value there may be white space, the closing marker of the key once more, or the attributes of a tag.
    std::size_t open = behind_space(buffer, key.end);
    while (form.key_close.size() > 1 && buffer.substr(open).starts_with(form.key_close)) open = behind_space(buffer, open + form.key_close.size());
    if (form.key_close.size() == 1) open = std::min(buffer.find_first_of("<>\n", key.end), buffer.size());
    const std::string_view rest = buffer.substr(open);
    if (open - key.end > kLongestKey) return key;
    if (!rest.starts_with(form.value_open)) {
      const bool may_come = form.value_open.starts_with(rest) || form.key_close.starts_with(rest);
      return may_come ? waits(open - key.end) : key;
    }
    key.attributes = buffer.substr(key.end, open - key.end);
    key.end = open + form.value_open.size();
  }
  key.state = KeyState::read;
  return key;
}

// Returns whether, from offset `at` of the buffer on and after white space, one of the texts `next` follows, or nothing until the end of
// the output. nullopt: more bytes are needed to decide.
std::optional<bool> OutputParser::State::goes_on_behind(std::size_t at, const Texts& next) const {
  const std::string_view rest = std::string_view(buffer_).substr(behind_space(buffer_, at));
  if (rest.empty()) return last_ ? std::optional(true) : std::nullopt;
  bool unsure = false;
  for (const std::string_view text : next) {
    if (rest.starts_with(text)) return true;
    unsure |= !last_ && text.starts_with(rest);
  }
  if (unsure) return std::nullopt;
  return false;
}

void OutputParser::State::add_argument(std::string_view key, const Json& value) {
  add_arguments((first_parameter_ ? "" : ", ") + Json(key).dump().append(": ").append(value.dump()));
  first_parameter_ = false;
}

// Adds the value that is being read to the call's arguments. The value ends at offset `end`; reading continues at offset `behind`. `closed`:
// the value's closing marker is at `end`.
void OutputParser::State::take_value(std::size_t end, std::size_t behind, bool closed) {
  const CallForm& form = *form_;
  std::string_view text = std::string_view(buffer_).substr(value_.begin, end - value_.begin);
  const std::string_view pad = form.value_pad;
  if (!closed) text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (!pad.empty() && text.starts_with(pad)) text.remove_prefix(pad.size());
  if (!pad.empty() && closed && text.ends_with(pad)) text.remove_suffix(pad.size());
  const Json* schema = call_schema();
  const Json* property = property_of(schema, value_.key);
  unsigned types = property != nullptr ? types_of(*property, *schema) : unsigned{SchemaTypes::kAny};
  if (value_.attributes.find("string=\"true\"") != std::string::npos) types = SchemaTypes::kString;
  if (!form.text_open.empty() && text.size() >= form.text_open.size() + form.text_close.size() && text.starts_with(form.text_open) &&
      text.ends_with(form.text_close)) {
    text = text.substr(form.text_open.size(), text.size() - form.text_open.size() - form.text_close.size());
    types = SchemaTypes::kString;
  }
  add_argument(value_.key, value_of(std::string(text), types, property != nullptr));
  consume(behind);
  value_ = {};
}

OutputParser::State::Progress OutputParser::State::step_parameters() {
  if (value_.in_hand) return step_value();
  const CallForm& form = *form_;
  Texts ends{form.key_open};
  if (!form.close.empty()) ends.push_back(form.close);
  ends.insert(ends.end(), region_->close.begin(), region_->close.end());
  ends.insert(ends.end(), marks_.begin(), marks_.end());
  const Found found = find(ends);
  const bool is_junk = std::string_view(buffer_).substr(0, found.at).find_first_not_of(kBlanks) != std::string_view::npos;
  if (is_junk) calls_.back().broken = true;  // there is text that belongs to no parameter
  if (found.at > 0) {
    consume(found.at);
    return found.size > 0 ? Progress::made : Progress::waits;
  }
  if (found.size == 0) return Progress::waits;
  const std::string_view mark = ends[found.index];
  const auto among = [&](const std::vector<std::string>& texts) { return std::ranges::find(texts, mark) != texts.end(); };
  if (mark == form.key_open) {
    const Key key = read_key(0);
    if (key.state == KeyState::waits) return Progress::waits;
    if (key.state == KeyState::malformed) {
      calls_.back().broken = true;
      consume(found.size);
      return Progress::made;
    }
    value_ = {.key = key.name, .attributes = std::string(key.attributes), .begin = key.end, .scanned = key.end, .close = {}, .weak_end = {}, .in_hand = true};
    const Json* schema = call_schema();
    const Json* property = property_of(schema, key.name);
    const unsigned types = property != nullptr ? types_of(*property, *schema) : unsigned{SchemaTypes::kString};
    value_.is_json = types == SchemaTypes::kAny || (types & SchemaTypes::kString) == 0;
    value_end_ = {};
    return Progress::made;
  }
  const bool is_close = mark == form.close;
  const bool ends_call = is_close || among(region_->close) || among(region_->open) || (mark == form.open) || among(format_.dropped);
  if (!ends_call) {  // a marker that has no meaning here
    calls_.back().broken = true;
    consume(found.size);
    return Progress::made;
  }
  if (is_close) consume(found.size);
  add_arguments("}");
  end_call();
  return Progress::made;
}

OutputParser::State::Progress OutputParser::State::step_value() {
  const CallForm& form = *form_;
  const std::string_view buffer = buffer_;
  // If the schema says that the value is JSON, the value's end is found first, and markers are searched for only after this end, because a
  // string within JSON may contain any marker. If the value begins like no JSON, nothing of it is skipped.
  if (value_.is_json) {
    const auto json_end = value_end_.find(buffer.substr(value_.begin));
    if (!json_end && !last_) return Progress::waits;
    value_.scanned = std::max(value_.scanned, value_.begin + json_end.value_or(0));
    value_.is_json = false;
  }
  const bool on_lines = form.value_open.empty();
  Texts behind_close{form.key_open}, behind_call, behind_region;
  if (!form.close.empty()) behind_close.push_back(form.close);
  if (!form.open.empty()) behind_call.push_back(form.open);
  for (const std::string& close : region_->close) behind_call.push_back(close);
  for (const std::string& open : region_->open) behind_region.push_back(open);
  for (const std::string& text : format_.dropped) behind_region.push_back(text);
  if (region_->close.empty()) behind_call.insert(behind_call.end(), behind_region.begin(), behind_region.end());
  for (const std::string& close : region_->close) behind_close.push_back(close);
  behind_close.insert(behind_close.end(), behind_call.begin(), behind_call.end());
  Texts ends{form.value_close, form.key_open};
  if (!form.close.empty()) ends.push_back(form.close);
  const std::size_t regions = ends.size();
  ends.insert(ends.end(), region_->close.begin(), region_->close.end());
  const std::size_t opens = ends.size();
  ends.insert(ends.end(), behind_region.begin(), behind_region.end());
  const auto end_at = [&](std::size_t at) {
    const auto close = value_.close;
    if (close) take_value(*close, *close + form.value_close.size(), true);
    else take_value(value_.weak_end.value_or(at), value_.weak_end.value_or(at), false);
    return Progress::made;
  };
  for (;;) {
    const Found found = find(ends, value_.scanned);
    if (found.size == 0) {
      value_.scanned = found.at;
      if (!last_) return Progress::waits;
      if (value_.close || value_.weak_end) return end_at(0);
      return Progress::waits;
    }
    value_.scanned = found.at;
    const std::size_t behind = found.at + found.size;
    std::optional<bool> ends_value = false;
    if (found.index == 0) {
      ends_value = goes_on_behind(behind, behind_close);
      if (ends_value.value_or(false)) {
        take_value(found.at, behind, true);
        return Progress::made;
      }
      if (ends_value) value_.close = found.at;
    } else if (found.index == 1) {
      const std::size_t text = buffer.find_last_not_of(" \t", found.at - 1);
      const bool begins_line = text != buffer.npos && (buffer[text] == '\n' || text < value_.begin);
      if (!on_lines || begins_line || value_.close || value_.weak_end) {
        const Key key = read_key(found.at);
        ends_value = key.state == KeyState::waits ? std::nullopt : std::optional(key.state == KeyState::read);
      }
    } else if (found.index < opens) {
      ends_value = goes_on_behind(behind, found.index < regions ? behind_call : behind_region);
      if (ends_value && !*ends_value && !value_.weak_end) value_.weak_end = found.at;
    } else {
      ends_value = value_.weak_end.has_value() || value_.close.has_value();
    }
    if (!ends_value) return Progress::waits;
    if (*ends_value) return end_at(found.at);
    value_.scanned = behind;
  }
}

namespace {

// Reads the contents of an element: either further elements, or a text.
class ElementReader {
 public:
  ElementReader(std::string_view text, std::string_view mark, const Json* root) : text_(text), mark_(mark), root_(root) {}

  // Reads elements up to the end of the text, as the members of an object. nullopt: the text does not consist only of elements.
  std::optional<Json> members(const Json* schema, int depth = 0) {
    Json out = Json::object();
    while (skip_to_element()) {
      auto one = element(schema, depth);
      if (!one) return std::nullopt;
      out.set(one->first, std::move(one->second));
    }
    return at_ == text_.size() ? std::optional(out) : std::nullopt;
  }

 private:
  bool skip_to_element() {
    const std::size_t next = behind_space(text_, at_);
    if (next == text_.size()) at_ = next;
    if (!text_.substr(next).starts_with(mark_)) return false;
    const std::string_view tag = text_.substr(next + mark_.size());
    if (!tag.starts_with('<') || tag.starts_with("</")) return false;
    at_ = next;
    return true;
  }

  std::optional<std::pair<std::string, Json>> element(const Json* schema, int depth) {
    if (depth > 64) return std::nullopt;
    at_ += mark_.size() + 1;
    const std::size_t end = text_.find_first_of(">\n", at_);
    if (end == text_.npos || text_[end] != '>' || end == at_) return std::nullopt;
    const std::string key(text_.substr(at_, end - at_));
    if (key.find_first_of("<[") != key.npos) return std::nullopt;
    at_ = end + 1;
    const std::string close = std::string(mark_) + "</" + key + ">";
    const Json* own = child(schema, key);
    Json value;
    if (skip_to_element()) {
      Json::Array items;
      Json object = Json::object();
      bool is_list = true;
      while (skip_to_element()) {
        auto one = element(own, depth + 1);
        if (!one) return std::nullopt;
        is_list = is_list && one->first == "item";
        if (is_list) items.push_back(one->second);
        object.set(one->first, std::move(one->second));
      }
      at_ = behind_space(text_, at_);
      value = is_list && property_of(own, "item") == nullptr ? Json(std::move(items)) : std::move(object);
    } else {
      const std::size_t stop = text_.find(mark_, at_);
      if (stop == text_.npos) return std::nullopt;
      const unsigned types = own != nullptr ? types_of(*own, *root_) : unsigned{SchemaTypes::kAny};
      std::string text(text_.substr(at_, stop - at_));
      if (text.empty() && (types & SchemaTypes::kString) == 0 && (types & (SchemaTypes::kArray | SchemaTypes::kObject)) != 0) {
        value = (types & SchemaTypes::kArray) != 0 ? Json::array() : Json::object();
      } else {
        value = value_of(std::move(text), types, own != nullptr);
      }
      at_ = stop;
    }
    if (!text_.substr(at_).starts_with(close)) return std::nullopt;
    at_ += close.size();
    return std::pair(key, std::move(value));
  }

  static const Json* items_of(const Json* schema) { return schema != nullptr ? schema->find("items") : nullptr; }
  const Json* child(const Json* schema, const std::string& key) const {
    const Json* property = property_of(schema, key);
    if (property == nullptr && key == "item") property = items_of(schema);
    const Json* reference = property != nullptr ? property->find("$ref") : nullptr;
    const Json* other = reference != nullptr ? schema_at(*root_, *reference) : nullptr;
    return other != nullptr ? other : property;
  }

  std::string_view text_, mark_;
  const Json* root_;
  std::size_t at_ = 0;
};

}  // namespace

// Reads a call's arguments as elements, up to the call's closing marker. An element is <KEY>VALUE</KEY>, with the text CallForm::mark
// before both tags. If an element is malformed, the call is reported as broken and has the arguments {}.
OutputParser::State::Progress OutputParser::State::step_elements() {
  const CallForm& form = *form_;
  Texts ends{form.close, form.open};
  ends.insert(ends.end(), region_->close.begin(), region_->close.end());
  ends.insert(ends.end(), region_->open.begin(), region_->open.end());
  const Found found = find(ends, value_.scanned);
  value_.scanned = found.at;
  if (found.size == 0) return Progress::waits;
  const std::string_view text = std::string_view(buffer_).substr(0, found.at);
  const Json* schema = call_schema();
  auto arguments = ElementReader(text, form.mark, schema).members(schema);
  if (!arguments) calls_.back().broken = true;
  add_arguments(arguments ? arguments->dump() : "{}");
  consume(found.at + (found.index == 0 ? found.size : 0));
  end_call();
  return Progress::made;
}

}  // namespace tessera
