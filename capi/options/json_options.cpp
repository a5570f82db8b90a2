#include "options/json_options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tessera::c {

namespace {

// Returns how many letters must be inserted, removed or replaced to turn `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

constexpr std::size_t kLongestName = 64;  // a longer name gets no suggestion

std::string_view nearest(std::string_view name, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t least = std::min<std::size_t>(name.size() / 2 + 1, 6);
  if (name.size() > kLongestName) return best;
  for (const std::string_view other : known) {
    const std::size_t d = distance(name, other);
    if (d < least) best = other, least = d;
  }
  return best;
}

std::string number_text(double value) {
  return value == std::trunc(value) ? Json(static_cast<std::int64_t>(value)).dump() : Json(value).dump();
}

std::string quoted_list(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += '"';
    text += name;
    text += '"';
  }
  return text;
}

}  // namespace

void Value::refuse(std::string_view why) const {
  fail(ErrorCode::invalid_argument, why, path_.empty() ? "options" : std::string_view(path_));
}

bool Value::boolean() const {
  if (const bool* value = json_->boolean()) return *value;
  refuse("must be true or false");
}

double Value::number() const {
  if (const std::int64_t* value = json_->integer()) return static_cast<double>(*value);
  if (const double* value = json_->number(); value != nullptr && std::isfinite(*value)) return *value;
  refuse("must be a number");
}

double Value::number(double least, double most) const {
  const double value = number();
  if (value >= least && value <= most) return value;
  refuse("must be a number from " + number_text(least) + (std::isinf(most) ? " upwards" : " to " + number_text(most)));
}

double Value::positive(double most) const {
  const double value = number();
  if (value > 0 && value <= most) return value;
  refuse("must be a number above 0" + (std::isinf(most) ? std::string() : " and at most " + number_text(most)));
}

std::int64_t Value::integer(std::int64_t least, std::int64_t most) const {
  const std::int64_t* value = json_->integer();
  if (value != nullptr && *value >= least && *value <= most) return *value;
  const std::string to = most == std::numeric_limits<std::int64_t>::max() ? " upwards" : " to " + std::to_string(most);
  refuse("must be an integer from " + std::to_string(least) + to);
}

std::uint64_t Value::unsigned_integer() const {
  if (const Json::WrittenNumber* written = json_->written_number(); written != nullptr && written->is_integer()) {
    std::uint64_t value = 0;
    const char* end = written->text.data() + written->text.size();
    const auto [at, failed] = std::from_chars(written->text.data(), end, value);
    if (failed == std::errc() && at == end) return value;
  }
  return static_cast<std::uint64_t>(integer(0, std::numeric_limits<std::int64_t>::max()));
}

const std::string& Value::string() const {
  if (const std::string* value = json_->string()) return *value;
  refuse("must be a text");
}

std::vector<Value> Value::elements() const {
  const Json::Array* array = json_->elements();
  if (array == nullptr) refuse("must be a list");
  std::vector<Value> values;
  for (std::size_t i = 0; i < array->size(); ++i)
    values.emplace_back((*array)[i], path_ + "[" + std::to_string(i) + "]");
  return values;
}

std::vector<std::string> Value::strings() const {
  if (json_->string() != nullptr) return {string()};
  std::vector<std::string> texts;
  if (json_->elements() == nullptr) refuse("must be a text or a list of texts");
  for (const Value& element : elements()) texts.push_back(element.string());
  return texts;
}

std::vector<std::string> Value::stop_texts() const {
  std::vector<std::string> texts = strings();
  if (std::ranges::find(texts, std::string()) == texts.end()) return texts;
  refuse("an empty text would end every text in front of its first letter; leave it out");
}

std::vector<std::int32_t> Value::tokens() const {
  std::vector<std::int32_t> ids;
  for (const Value& element : elements()) ids.push_back(element.integer<std::int32_t>(0));
  return ids;
}

std::size_t Value::choice(std::span<const std::string_view> names) const {
  if (const std::string* text = json_->string()) {
    const auto at = std::ranges::find(names, std::string_view(*text));
    if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  }
  refuse("must be one of " + quoted_list(names));
}

void fail_unknown_key(const Value& object, std::string_view key, std::span<const std::string_view> known) {
  std::string message = "there is no key \"" + std::string(key.substr(0, kLongestName)) + "\"; ";
  if (const std::string_view other = nearest(key, known); !other.empty()) {
    message += "did you mean \"" + std::string(other) + "\"?";
  } else {
    message += "the keys are " + quoted_list(known);
  }
  object.refuse(message);
}

Json parse_json(const char* json, std::size_t size, std::string_view what, HalfPairs half_pairs) {
  const std::string_view given = text(json, size, what);
  if (given.find_first_not_of(" \t\r\n") == std::string_view::npos) return Json::object();
  Result<Json> parsed =
      Json::parse(given, {.refuse_repeated_keys = true, .refuse_half_pairs = half_pairs == HalfPairs::refuse});
  if (!parsed) {
    std::string_view place = parsed.error().place();
    if (constexpr std::string_view kParser = "JSON, "; place.starts_with(kParser)) place.remove_prefix(kParser.size());
    fail(parsed.error().code(), parsed.error().message(),
         std::string(what) + (place.empty() ? "" : ", ") + std::string(place));
  }
  return *std::move(parsed);
}

}  // namespace tessera::c
