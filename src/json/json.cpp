#include <tessera/json/json.hpp>

#include <iterator>

#include <fmt/format.h>

#include "json/spelling.hpp"

namespace tessera {
namespace {

void append(std::string& out, const Json& json, int depth) {
  if (depth > 1000 || json.is_null()) {
    out += "null";
  } else if (const bool* truth = json.boolean()) {
    out += *truth ? "true" : "false";
  } else if (const std::int64_t* integer = json.integer()) {
    out += fmt::format("{}", *integer);
  } else if (const double* number = json.number()) {
    out += detail::json_number(*number);
  } else if (const auto* written = json.written_number()) {
    out += written->text;
  } else if (const std::string* text = json.string()) {
    detail::append_json_string(out, *text);
  } else if (const Json::Array* elements = json.elements()) {
    out += '[';
    for (std::size_t i = 0; i < elements->size(); ++i) {
      if (i > 0) out += ", ";
      append(out, (*elements)[i], depth + 1);
    }
    out += ']';
  } else if (const Json::Object* members = json.members()) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : *members) {
      if (!first) out += ", ";
      first = false;
      detail::append_json_string(out, key);
      out += ": ";
      append(out, value, depth + 1);
    }
    out += '}';
  }
}

}  // namespace

// Frees all values inside this value, without recursion (values may be nested deeply) and without taking memory. The loop frees the members
// of one array or object, `here`, from the last to the first. If the last member has members itself, it becomes the new `here`, and the
// loop needs a place to remember the old one. That place is the first member of the new `here`: the old `here` is moved there, and the
// first member is moved to the end of the old `here`, to be freed when the loop comes back.
void Json::free_children() noexcept {
  const auto child = [](Json& of, bool last) -> Json* {  // returns nullptr if there is no child
    if (Array* array = of.elements()) return array->empty() ? nullptr : last ? &array->back() : &array->front();
    if (Object* object = of.members()) return object->empty() ? nullptr : last ? &object->back().second : &object->front().second;
    return nullptr;
  };
  const auto size = [](const Json& of) { return of.elements() != nullptr ? of.elements()->size() : of.members()->size(); };
  Json here = std::move(*this);
  value_ = std::monostate{};
  for (std::size_t depth = 0;;) {
    if (size(here) == (depth > 0 ? 1 : 0)) {  // only the enclosing value, which is kept here, is left
      if (depth-- == 0) return here.value_ = std::monostate{}, void();
      Json around = std::move(*child(here, true));
      here = std::move(around);
      continue;
    }
    Json* const last = child(here, true);
    Json* const inner = child(*last, false);
    if (inner == nullptr) {
      if (Array* array = here.elements()) array->pop_back();
      else here.members()->pop_back();
      continue;
    }
    Json next = std::move(*last);
    *last = std::move(*child(next, false));
    *child(next, false) = std::move(here);
    here = std::move(next);
    ++depth;
  }
}

Json::Type Json::type() const noexcept {
  constexpr Type of_alternative[] = {Type::null,   Type::boolean, Type::number, Type::number,
                                     Type::number, Type::string,  Type::array,  Type::object};
  static_assert(std::size(of_alternative) == std::variant_size_v<decltype(value_)>);
  return of_alternative[value_.index()];
}

std::string Json::dump() const {
  std::string out;
  append(out, *this, 0);
  return out;
}

const Json* Json::find(std::string_view key) const noexcept {
  if (const Object* object = members()) {
    for (const auto& [name, value] : *object) {
      if (name == key) return &value;
    }
  }
  return nullptr;
}

Json& Json::set(std::string_view key, Json value) {
  if (members() == nullptr) value_ = Object{};
  for (auto& [name, old] : *members()) {
    if (name == key) return old = std::move(value);
  }
  return members()->emplace_back(std::string(key), std::move(value)).second;
}

}  // namespace tessera
