#include "chat/calls/arguments.hpp"

#include <algorithm>

#include "chat/calls/compose.hpp"
#include "chat/calls/schema_keys.hpp"
#include "chat/schema_types.hpp"
#include "core/error.hpp"

namespace tessera::calls {

Json parameters_of(const Json& function) {
  const Json* schema = function.find("parameters");
  Json out = schema != nullptr && schema->members() != nullptr ? *schema : Json::object();
  if (out.members()->empty()) out.set("additionalProperties", false);
  if (out.find("type") == nullptr) out.set("type", "object");
  return out;
}

Grammar json_arguments(const Json& schema, const JsonSchemaOptions& options) {
  return must(Grammar::json_schema(schema.dump(), options));
}

namespace {

// Limit for the bytes of all properties' schemas together, since each gets a copy of the definitions.
constexpr std::size_t kLongestSchemas = std::size_t{2} << 20;

// Returns the schema of one property as a document of its own, together with the definitions to which its references point.
Json with_definitions(const Json& property, const Json& root) {
  Json out = property;
  if (out.members() == nullptr || out.dump().find("\"$ref\"") == std::string::npos) return out;
  for (const char* key : {"$defs", "definitions"}) {
    const Json* definitions = root.find(key);
    if (definitions != nullptr && out.find(key) == nullptr) out.set(key, *definitions);
  }
  return out;
}

// Collects the ways in which one property's value may be written: as plain text without quotes, and as JSON.
class Values {
 public:
  Values(const Json& root, std::vector<std::string> markers, const JsonSchemaOptions& options)
      : root_(root), markers_(std::move(markers)), options_(options) {}

  void add(const Json& schema, const std::string& path, int depth = 0) {
    if (depth > kDeepest || ++schemas_ > kMostSchemas) refuse(path, "a schema that is nested as deep, or that holds itself");
    const unsigned types = types_of(schema, root_);
    if ((types & SchemaTypes::kString) == 0 || types == SchemaTypes::kAny) return add_json(schema, path);
    if (const Json* reference = schema.find("$ref")) {
      const Json* other = schema_at(root_, *reference);
      if (other == nullptr) refuse(path + "/$ref", "this reference");
      return add(*other, path, depth + 1);
    }
    if (const auto values = fixed_values(schema)) return add_fixed(*values, path);
    for (const char* key : {"anyOf", "oneOf"}) {
      const Json* options = schema.find(key);
      if (options == nullptr || options->elements() == nullptr) continue;
      check_keys(schema, {key, "type", "nullable"}, path, options_);
      std::size_t i = 0;
      for (const Json& option : *options->elements()) add(option, path + "/" + key + "/" + std::to_string(i++), depth + 1);
      return;
    }
    const Json* type = schema.find("type");
    if (type == nullptr) refuse(path, "a string by this schema");
    if (type->elements() == nullptr) {
      add_text(schema, path);
      if (types != SchemaTypes::kString) json_.push_back(must(Grammar::literal("null")));  // null is allowed beside the strings
      return;
    }
    for (const Json& one : *type->elements()) {
      Json single = schema;
      single.set("type", one);
      if (one == Json("string")) add_text(single, path, {"minimum", "maximum", "items", "minItems", "maxItems"});
      else add_json(single, path);
    }
  }

  [[nodiscard]] const std::vector<Grammar>& texts() const noexcept { return texts_; }
  [[nodiscard]] const std::vector<Grammar>& json() const noexcept { return json_; }

 private:
  static constexpr int kDeepest = 16, kMostSchemas = 500;

  void add_json(const Json& schema, const std::string& path) {
    const std::string document = with_definitions(schema, root_).dump();
    bytes_ += document.size();
    if (bytes_ > kLongestSchemas) refuse(path, "schemas of this size");
    json_.push_back(must(Grammar::json_schema(document, options_)));
  }

  void add_fixed(const Json::Array& values, const std::string& path) {
    std::vector<std::string> texts;
    for (const Json& value : values) {
      texts.push_back(value.string() != nullptr ? *value.string() : value.dump());
      const bool has_marker = std::any_of(markers_.begin(), markers_.end(), [&](const std::string& marker) { return texts.back().find(marker) != marker.npos; });
      if (has_marker) refuse(path, "a string with a marker in it");
    }
    if (texts.empty()) refuse(path, "an enum of a string without a string");
    texts_.push_back(any_text_of(texts));
  }

  // Adds the strings that the schema allows, written as plain text. No string may contain a marker of the format.
  void add_text(const Json& schema, const std::string& path, std::initializer_list<std::string_view> others = {}) {
    const bool ignores = options_.unsupported == JsonUnsupported::ignore;
    Json rest = Json::object();
    for (const auto& [key, value] : *schema.members()) {
      if (std::find(others.begin(), others.end(), key) == others.end()) rest.set(key, value);
    }
    check_keys(rest, {"type", "minLength", "maxLength", "pattern", "format", "nullable"}, path, options_);
    TextLimits limits;
    const auto count = [&](const char* key, std::uint32_t& out) {
      const Json* number = schema.find(key);
      if (number == nullptr) return;
      if (number->integer() == nullptr || *number->integer() < 0) refuse(path + "/" + key, "this length");
      out = static_cast<std::uint32_t>(std::min<std::int64_t>(*number->integer(), 0xFFFFFFFE));
    };
    count("minLength", limits.min_length);
    count("maxLength", limits.max_length);
    const auto text_of = [&](const char* key) { return schema.find(key) != nullptr && schema.find(key)->string() != nullptr ? *schema.find(key)->string() : std::string(); };
    Grammar text = held(limits, path);
    for (const char* key : {"pattern", "format"}) {
      if (text_of(key).empty() || (std::string_view(key) == "format" && options_.formats == JsonFormats::annotation)) continue;
      TextLimits more = limits;
      (std::string_view(key) == "pattern" ? more.pattern : more.format) = text_of(key);
      auto made = Grammar::text(more, markers_);
      if (made) limits = more, text = *std::move(made);
      else if (!ignores) refuse(path + "/" + key, "this " + std::string(key) + ": " + made.error().message());
    }
    texts_.push_back(std::move(text));
  }

  [[nodiscard]] Grammar held(const TextLimits& limits, const std::string& path) const {
    auto text = Grammar::text(limits, markers_);
    if (!text) refuse(path, text.error().message());
    return *std::move(text);
  }

  const Json& root_;
  std::vector<std::string> markers_;
  const JsonSchemaOptions& options_;
  std::size_t bytes_ = 0;
  int schemas_ = 0;
  std::vector<Grammar> texts_, json_;
};

// Returns the grammar of one parameter: its key and its value, with the markers around them.
Grammar parameter(const Grammar& key, const Values& values, const CallForm& form) {
  const auto with_value = [&](const std::vector<Grammar>& ways, const char* is_string) {
    Sequence one;
    one.text(form.key_open).part(key).text(form.key_close);
    if (form.marks_strings) one.text(" string=\"").text(is_string).text("\"");
    if (!form.value_open.empty()) one.pattern(form.marks_strings ? "" : kSpace).text(form.value_open);
    return one.text(form.value_pad).part(any_of(ways)).text(form.value_pad).text(form.value_close).pattern(kSpace).done();
  };
  if (!form.marks_strings) {
    std::vector<Grammar> ways = values.texts();
    ways.insert(ways.end(), values.json().begin(), values.json().end());
    return with_value(ways, "");
  }
  std::vector<Grammar> ways;
  if (!values.texts().empty()) ways.push_back(with_value(values.texts(), "true"));
  if (!values.json().empty()) ways.push_back(with_value(values.json(), "false"));
  return any_of(ways);
}

// Makes grammars for the elements (<KEY>VALUE</KEY>) of an object or a list.
class Elements {
 public:
  Elements(const Json& root, const CallForm& form, const JsonSchemaOptions& options) : root_(root), form_(form), options_(options) {}

  [[nodiscard]] Grammar members(const Json& schema, const std::string& path, int depth = 0) {
    Sequence all;
    for (const Property& property : properties_of(schema, options_, path)) {
      if (property.name.find_first_of("<>[]\n") != std::string::npos) refuse(property.path, "a parameter of this name");
      const Grammar one = element(property.name, property.schema, property.path, depth);
      all.part(property.required ? one : optional(one));
    }
    return all.done();
  }

 private:
  [[nodiscard]] Grammar element(const std::string& name, const Json& schema, const std::string& path, int depth) {
    if (depth > 16 || ++parts_ > 2000) refuse(path, "a schema with this many parts");
    Sequence one;
    one.text(form_.mark).text("<" + name + ">").part(value(schema, path, depth + 1)).text(form_.mark).text("</" + name + ">");
    return one.done();
  }
  [[nodiscard]] Grammar value(const Json& schema, const std::string& path, int depth) {
    if (const Json* reference = schema.find("$ref")) {
      const Json* other = schema_at(root_, *reference);
      if (other == nullptr) refuse(path + "/$ref", "this reference");
      return depth > 16 ? refuse_deep(path) : value(*other, path, depth + 1);
    }
    const unsigned types = types_of(schema, root_);
    if (types == SchemaTypes::kObject) return members(schema, path, depth);
    if (types == SchemaTypes::kArray) {
      check_keys(schema, {"type", "items", "minItems", "maxItems"}, path, options_);
      const Json* items = schema.find("items");
      const auto count = [&](const char* key, std::int64_t otherwise) {
        const Json* number = schema.find(key);
        if (number == nullptr) return static_cast<std::uint32_t>(otherwise);
        if (number->integer() == nullptr || *number->integer() < 0 || *number->integer() > 10000) refuse(path + "/" + key, "this number of items");
        return static_cast<std::uint32_t>(*number->integer());
      };
      const std::uint32_t min = count("minItems", 0), max = count("maxItems", 100000);
      if (max == 0) return Sequence().done();
      const Json text = *Json::parse(R"({"type": "string", "minLength": 1})");
      return must(Grammar::repeat(element("item", items != nullptr ? *items : text, path + "/items", depth), min, max == 100000 ? 0 : max));
    }
    if ((types & (SchemaTypes::kObject | SchemaTypes::kArray)) != 0 && types != SchemaTypes::kAny) refuse(path, "a list or an object beside other types");
    Values values(root_, {form_.mark}, options_);
    values.add(types == SchemaTypes::kAny ? *Json::parse(R"({"type": "string"})") : schema, path);
    std::vector<Grammar> ways = values.texts();
    ways.insert(ways.end(), values.json().begin(), values.json().end());
    return any_of(ways);
  }
  [[noreturn]] static Grammar refuse_deep(const std::string& path) { refuse(path, "a schema that is nested as deep, or that holds itself"); }

  const Json& root_;
  const CallForm& form_;
  const JsonSchemaOptions& options_;
  std::size_t parts_ = 0;
};

}  // namespace

Grammar parameter_arguments(const Json& schema, const CallForm& form, const std::vector<std::string>& markers,
                            const JsonSchemaOptions& options) {
  Sequence all;
  for (const Property& property : properties_of(schema, options)) {
    const bool has_marker = std::any_of(markers.begin(), markers.end(), [&](const std::string& marker) { return property.name.find(marker) != marker.npos; });
    if (has_marker || property.name.find(form.key_close) != std::string::npos || property.name.find('\n') != std::string::npos) {
      refuse(property.path, "a parameter of this name");
    }
    Values values(schema, markers, options);
    values.add(property.schema, property.path);
    const Grammar one = parameter(must(Grammar::literal(property.name)), values, form);
    all.part(property.required ? one : optional(one));
  }
  return all.done();
}

Grammar element_arguments(const Json& schema, const CallForm& form, const JsonSchemaOptions& options) {
  return Elements(schema, form, options).members(schema, {});
}

Json loosened(const Json& schema) {
  Json properties = Json::object();
  const Json* listed = schema.find("properties");
  if (listed != nullptr && listed->members() != nullptr) {
    for (const auto& [name, property] : *listed->members()) {
      const bool is_plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '.' || c == '-';
      });
      const unsigned types = types_of(property, schema);
      Json kept = Json::object();
      if (types != SchemaTypes::kAny && (types & SchemaTypes::kString) != 0) kept.set("type", "string");
      else if (types == SchemaTypes::kArray) kept.set("type", "array");
      if (is_plain) properties.set(name, std::move(kept));
    }
  }
  Json out = Json::object();
  out.set("type", "object");
  out.set("properties", std::move(properties));
  return out;
}

}  // namespace tessera::calls
