#include "types/names.hpp"

#include <algorithm>
#include <cctype>

namespace tessera::python {

DType kv_type_named(std::string_view option, std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "auto") return DType::automatic;
  std::string known = "\"auto\"";
  for (const DType type : kv_types()) {
    std::string word(to_string(type));
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (word == lower) return type;
    known += ", \"" + word + "\"";
  }
  raise(ErrorCode::invalid_argument, std::string(option) + "=\"" + std::string(name) + "\": choose one of " + known);
}

Numerics numerics_named(std::string_view name) {
  if (const auto numerics = parse_numerics(name)) return *numerics;
  raise(ErrorCode::invalid_argument,
        "numerics=\"" + std::string(name) + R"(": choose one of "auto", "bf16", "fastest", "reference", "invariant")");
}

Activations activations_named(std::string_view name) {
  if (const auto activations = parse_activations(name)) return *activations;
  raise(ErrorCode::invalid_argument, "activations=\"" + std::string(name) + R"(": choose one of "auto", "model")");
}

InstructionSet instruction_set_named(std::string_view name) {
  if (const auto set = parse_instruction_set(name)) return *set;
  std::string known = "\"auto\"";
  for (const InstructionSet set : kInstructionSets) known += ", \"" + std::string(to_string(set)) + "\"";
  raise(ErrorCode::invalid_argument, "instruction_set=\"" + std::string(name) + "\": choose one of " + known);
}

JsonSchemaOptions json_options(std::string_view whitespace, std::string_view numbers, std::string_view order,
                               std::string_view formats, std::string_view unsupported) {
  static constexpr Named<JsonSpace> kSpaces[] = {
      {"any", JsonSpace::any}, {"none", JsonSpace::none}, {"blank", JsonSpace::blank}};
  static constexpr Named<JsonNumbers> kNumbers[] = {{"any", JsonNumbers::any}, {"plain", JsonNumbers::plain}};
  static constexpr Named<JsonOrder> kOrders[] = {{"any", JsonOrder::any}, {"stated", JsonOrder::stated}};
  static constexpr Named<JsonFormats> kFormats[] = {{"by_draft", JsonFormats::by_draft},
                                                    {"assertion", JsonFormats::assertion},
                                                    {"annotation", JsonFormats::annotation}};
  static constexpr Named<JsonUnsupported> kUnsupported[] = {{"refuse", JsonUnsupported::refuse},
                                                            {"ignore", JsonUnsupported::ignore}};
  return {.space = value_named("whitespace", whitespace, kSpaces),
          .order = value_named("order", order, kOrders),
          .numbers = value_named("numbers", numbers, kNumbers),
          .formats = value_named("formats", formats, kFormats),
          .unsupported = value_named("unsupported", unsupported, kUnsupported)};
}

nb::object finish_name(FinishReason reason) {
  if (reason == FinishReason::none) return nb::none();
  const std::string_view name = to_string(reason);
  return nb::str(name.data(), name.size());
}

}  // namespace tessera::python
