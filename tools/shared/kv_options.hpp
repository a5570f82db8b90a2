// The options --kv-dtype and --kv-wide of all programs. A type is the name of one of kv_types() in small letters, or "auto". Other names
// are usage errors (exit status 2).
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/extend/kv/kv_layout.hpp>
#include <tessera/kv/wide_layers.hpp>

namespace tessera::tool {

inline std::string kv_type_name(DType type) { return CLI::detail::to_lower(std::string(to_string(type))); }

inline std::string kv_type_names() {
  std::string names = kv_type_name(DType::automatic);
  for (const DType each : kv_types()) names += "|" + kv_type_name(each);
  return names;
}

inline DType kv_type_named(const std::string& option, const std::string& text) {
  const std::string name = CLI::detail::to_lower(text);
  if (name == kv_type_name(DType::automatic)) return DType::automatic;
  for (const DType each : kv_types()) {
    if (name == kv_type_name(each)) return each;
  }
  throw CLI::ValidationError(option, fmt::format("\"{}\" is not one of {}", text, kv_type_names()));
}

inline CLI::Option* add_kv_dtype(CLI::App& app, DType& type, const std::string& description) {
  const auto set = [&type](const std::string& text) { type = kv_type_named("--kv-dtype", text); };
  return app.add_option_function<std::string>("--kv-dtype", set, description)->type_name(kv_type_names());
}

// Parses "TYPE", "TYPE:N" or "TYPE:FIRST+LAST".
inline WideLayers parse_wide_layers(const std::string& option, const std::string& text) {
  const std::size_t colon = text.find(':');
  WideLayers wide{.dtype = kv_type_named(option, text.substr(0, colon))};
  if (colon == text.npos) return wide;
  const auto number = [&](std::string_view digits) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc() && end == digits.data() + digits.size()) return value;
    throw CLI::ValidationError(option, fmt::format("\"{}\": layers are a number, or two as in int8:2+1", text));
  };
  const std::string_view layers = std::string_view(text).substr(colon + 1);
  const std::size_t plus = layers.find('+');
  wide.first = number(layers.substr(0, plus));
  wide.last = plus == layers.npos ? wide.first : number(layers.substr(plus + 1));
  return wide;
}

inline CLI::Option* add_kv_wide(CLI::App& app, WideLayers& wide) {
  const auto set = [&wide](const std::string& text) { wide = parse_wide_layers("--kv-wide", text); };
  return app
      .add_option_function<std::string>("--kv-wide", set, "Another type for the first and the last N layers (default: 1).\nint8:2+1: int8 for the first two layers and the last one\nDefault: the same type for all layers")
      ->type_name("TYPE[:N[+N]]");
}

}  // namespace tessera::tool
