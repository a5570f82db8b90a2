#include <tessera/json/json.hpp>

#include <cmath>

#include <fmt/format.h>

#include "core/utf8.hpp"
#include "json/python_float.hpp"

namespace tessera {
namespace {

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const auto step = detail::utf8_step(text.substr(at));
    const char c = text[at];
    constexpr std::string_view from = "\"\\\b\f\n\r\t", to = "\"\\bfnrt";
    if (step.kind != detail::Utf8Kind::valid) {
      out += detail::kReplacement;
    } else if (const std::size_t i = from.find(c); i != from.npos) {
      out += '\\';
      out += to[i];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out.append(text.substr(at, step.size));
    }
    at += step.size;
  }
  out += '"';
}

void append(std::string& out, const Json& json, int depth) {
  if (depth > 1000 || json.is_null()) {
    out += "null";
  } else if (const bool* truth = json.boolean()) {
    out += *truth ? "true" : "false";
  } else if (const std::int64_t* integer = json.integer()) {
    out += fmt::format("{}", *integer);
  } else if (const double* number = json.number()) {
    out += std::isnan(*number) ? "NaN" : std::isinf(*number) ? (*number < 0 ? "-Infinity" : "Infinity")
                                                             : detail::python_float(*number);
  } else if (const auto* big = json.big_integer()) {
    out += big->digits;
  } else if (const std::string* text = json.string()) {
    append_string(out, *text);
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
      append_string(out, key);
      out += ": ";
      append(out, value, depth + 1);
    }
    out += '}';
  }
}

}  // namespace

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
