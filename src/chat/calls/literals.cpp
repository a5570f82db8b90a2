// Grammars of arguments in two syntaxes that are not JSON: Python's literals, and Gemma's. The two differ in how strings, names and
// constants are written; everything else is shared here.
#include <algorithm>
#include <cctype>

#include "chat/calls/arguments.hpp"
#include "chat/calls/compose.hpp"
#include "chat/calls/schema_keys.hpp"
#include "chat/schema_types.hpp"

namespace tessera::calls {
namespace {

constexpr int kDeepest = 16;
constexpr std::size_t kMostParts = 4000;  // limit for the parts of one tool's grammar, which references and optional properties multiply
constexpr std::string_view kMark = "<|\"|>";
// The rule for a number that the schema does not limit: the numbers that JsonNumbers::plain allows.
constexpr std::string_view kNumber = "number ::= /-?(0|[1-9][0-9]{0,15})(\\.[0-9]{1,16})?([eE][-+]?[0-9]{1,2})?/\n";

class Literals {
 public:
  explicit Literals(const Json& root, const JsonSchemaOptions& options) : root_(root), options_(options) {}
  virtual ~Literals() = default;

  // Returns the grammar of an object's properties with separators between them. Properties that are not required may be left out.
  [[nodiscard]] Grammar properties(const Json& schema, const std::string& path, std::string_view equals, int depth) const {
    const std::vector<Property> list = properties_of(schema, options_, path);
    std::vector<Grammar> pairs;
    for (const Property& property : list) {
      Sequence pair;
      if (depth == 0) pair.text(property.name);
      else pair.part(any_text_of(keys(property.name)));
      pair.text(equals);
      if (depth > 0) pair.pattern(" ?");
      pair.part(value(property.schema, property.path, depth + 1));
      pairs.push_back(pair.done());
    }
    // Properties are written in the order of the schema. Properties that are not required may be left out, so the first one written is
    // any of those up to the first required property. For each such beginning there is one grammar: after its first property, the later
    // ones follow; required ones must follow, others may.
    std::vector<Grammar> beginnings;
    bool may_be_empty = true;
    for (std::size_t i = 0; i < list.size() && may_be_empty; ++i) {
      Sequence from;
      from.part(pairs[i]);
      for (std::size_t j = i + 1; j < list.size(); ++j) {
        const Grammar next = Sequence().pattern(", ?").part(pairs[j]).done();
        from.part(list[j].required ? next : optional(next));
      }
      spend(list.size() - i, path);
      beginnings.push_back(from.done());
      may_be_empty = !list[i].required;
    }
    if (beginnings.empty()) return Sequence().done();
    const Grammar all = any_of(beginnings);
    return may_be_empty ? optional(all) : all;
  }

  [[nodiscard]] Grammar value(const Json& schema, const std::string& path, int depth) const {
    if (depth > kDeepest) refuse(path, "a schema that is nested as deep, or that holds itself");
    spend(1, path);
    if (schema.members() == nullptr) {
      if (schema == Json(false)) refuse(path, "a schema that accepts no value");
      return any();
    }
    if (const Json* reference = schema.find("$ref")) return value(resolve(*reference, path), path, depth + 1);
    if (const auto values = fixed_values(schema)) {
      std::vector<std::string> texts;
      for (const Json& one : *values) texts.push_back(written(one, path));
      return any_text_of(texts);
    }
    if (const Json* options = schema.find("anyOf"); options != nullptr && options->elements() != nullptr) {
      check_keys(schema, {"anyOf"}, path, options_);
      std::vector<Grammar> all;
      for (const Json& option : *options->elements()) {
        all.push_back(value(option, path + "/anyOf/" + std::to_string(all.size()), depth + 1));
      }
      if (all.empty()) refuse(path, "an empty anyOf");
      return any_of(all);
    }
    const Json* type = schema.find("type");
    if (type == nullptr) {
      check_keys(schema, {}, path, options_);
      return any();
    }
    if (type->elements() == nullptr) return of_type(*type, schema, path, depth);
    std::vector<Grammar> all;
    for (const Json& one : *type->elements()) all.push_back(of_type(one, schema, path, depth));
    if (all.empty()) refuse(path, "an empty list of types");
    return any_of(all);
  }

 protected:
  [[nodiscard]] virtual Grammar text() const = 0;  // any string
  [[nodiscard]] virtual Grammar any() const = 0;   // any value
  [[nodiscard]] virtual Grammar object() const = 0;  // any object
  [[nodiscard]] virtual std::string quoted(const std::string& text, const std::string& path) const = 0;
  [[nodiscard]] virtual std::vector<std::string> keys(const std::string& name) const = 0;  // the ways in which a name may be written
  [[nodiscard]] virtual std::string_view constant(const Json& value) const = 0;            // the text for true, false or null

 private:
  void spend(std::size_t parts, const std::string& path) const {
    spent_ += parts;
    if (spent_ > kMostParts) refuse(path, "a schema with this many parts");
  }

  // Returns the grammar of an object for which the schema lists no properties: an empty object, or any object.
  [[nodiscard]] Grammar any_object(const Json& schema, const std::string& path) const {
    const Json* more = schema.find("additionalProperties");
    check_keys(schema, {"type", "additionalProperties"}, path, options_);
    if (more != nullptr && *more == Json(false)) return must(Grammar::literal("{}"));
    if (more != nullptr && *more != Json(true) && options_.unsupported == JsonUnsupported::refuse) {
      refuse(path + "/additionalProperties", "this keyword; ignoring what is unsupported leaves it out");
    }
    return object();
  }
  [[nodiscard]] Grammar of_type(const Json& type, const Json& schema, const std::string& path, int depth) const {
    const std::string name = type.string() != nullptr ? *type.string() : std::string();
    if (name == "string") {
      check_keys(schema, {"type"}, path, options_);
      return text();
    }
    if (name == "boolean") {
      return any_text_of({std::string(constant(Json(true))), std::string(constant(Json(false)))});
    }
    if (name == "null") return must(Grammar::literal(constant(Json())));
    if (name == "integer" || name == "number") {
      Json number = schema;
      number.set("type", name);
      return must(Grammar::json_schema(number.dump(), options_));
    }
    if (name == "array") return list(schema, path, depth);
    if (name == "object") {
      return schema.find("properties") == nullptr ? any_object(schema, path)
                                                  : Sequence().text("{").part(properties(schema, path, ":", depth)).text("}").done();
    }
    refuse(path + "/type", "this type");
  }

  [[nodiscard]] Grammar list(const Json& schema, const std::string& path, int depth) const {
    check_keys(schema, {"type", "items", "minItems", "maxItems"}, path, options_);
    const Json* items = schema.find("items");
    const Grammar item = items != nullptr ? value(*items, path + "/items", depth + 1) : any();
    const auto count = [&](const char* key, std::uint32_t otherwise) {
      const Json* number = schema.find(key);
      if (number == nullptr) return otherwise;
      if (number->integer() == nullptr || *number->integer() < 0 || *number->integer() > 10000) refuse(path, key);
      return static_cast<std::uint32_t>(*number->integer());
    };
    constexpr std::uint32_t kNoLimit = 100000;
    const std::uint32_t min = count("minItems", 0), max = count("maxItems", kNoLimit);
    if (max < min) refuse(path, "more items than there may be");
    if (max == 0) return must(Grammar::literal("[]"));
    const Grammar next = Sequence().pattern(", ?").part(item).done();
    Sequence some;
    some.part(item);
    if (max > 1) {
      some.part(must(Grammar::repeat(next, min > 0 ? min - 1 : 0, max == kNoLimit ? 0 : max - 1)));
    }
    return Sequence().text("[").part(min > 0 ? some.done() : optional(some.done())).text("]").done();
  }

  [[nodiscard]] std::string written(const Json& value, const std::string& path) const {
    if (value.string() != nullptr) return quoted(*value.string(), path);
    if (value.boolean() != nullptr || value.is_null()) return std::string(constant(value));
    if (value.integer() != nullptr || value.number() != nullptr) return value.dump();
    refuse(path, "an enum of lists or objects");
  }

  [[nodiscard]] const Json& resolve(const Json& reference, const std::string& path) const {
    const Json* at = schema_at(root_, reference);
    if (at == nullptr) refuse(path + "/$ref", "this reference");
    return *at;
  }

  const Json& root_;
  const JsonSchemaOptions& options_;
  mutable std::size_t spent_ = 0;
};

class Python final : public Literals {
 public:
  using Literals::Literals;

 private:
  static constexpr std::string_view kString =
      R"("([^"\\\x00-\x1f]|\\["'\\nrtbf])*"|'([^'\\\x00-\x1f]|\\["'\\nrtbf])*')";

  Grammar text() const override { return must(Grammar::regex(kString)); }
  Grammar any() const override { return rules("value"); }
  Grammar object() const override { return rules("dict"); }
  static Grammar rules(const std::string& root) {
    return must(Grammar::ebnf("root ::= " + root +
                              "\nvalue ::= text | number | \"True\" | \"False\" | \"None\" | list | dict\n"
                              "text ::= /" + std::string(kString) + "/\n"
                              + std::string(kNumber) +
                              "list ::= \"[\" (value (\",\" \" \"? value)*)? \"]\"\n"
                              "dict ::= \"{\" (text \":\" \" \"? value (\",\" \" \"? text \":\" \" \"? value)*)? \"}\"\n"));
  }
  std::string quoted(const std::string& text, const std::string&) const override {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      if (c == '\n') out += "\\n";
      else if (c == '\t') out += "\\t";
      else if (c == '\r') out += "\\r";
      else out += c;
    }
    return out + "\"";
  }
  std::vector<std::string> keys(const std::string& name) const override {
    if (name.find_first_of("'\\\n\t\r") != name.npos) return {quoted(name, {})};
    return {quoted(name, {}), "'" + name + "'"};
  }
  std::string_view constant(const Json& value) const override {
    return value.is_null() ? "None" : *value.boolean() ? "True" : "False";
  }
};

// Returns whether the name can be written without quotes in both syntaxes.
bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  });
}

class Braces final : public Literals {
 public:
  Braces(const Json& root, const JsonSchemaOptions& options, std::string_view close) : Literals(root, options), close_(close) {}

 private:
  Grammar text() const override {
    const std::vector<std::string> none = {std::string(kMark), close_};
    return Sequence().text(kMark).part(must(Grammar::without(none))).text(kMark).done();
  }
  // In the strings of these grammars, no "|" and no "t" follows a "<", because markers begin so (<|"|> and <tool_call|>).
  Grammar any() const override { return rules("value"); }
  Grammar object() const override { return rules("dict"); }
  static Grammar rules(const std::string& root) {
    return must(Grammar::ebnf("root ::= " + root +
                              "\nvalue ::= text | number | \"true\" | \"false\" | \"null\" | list | dict\n"
                              "text ::= \"<|\\\"|>\" /([^<]|<+[^<|t])*/ \"<|\\\"|>\"\n"
                              + std::string(kNumber) +
                              "list ::= \"[\" (value (\",\" value)*)? \"]\"\n"
                              "dict ::= \"{\" (key \":\" value (\",\" key \":\" value)*)? \"}\"\n"
                              "key ::= text | /[A-Za-z_][A-Za-z0-9_.-]*/\n"));
  }
  std::string quoted(const std::string& text, const std::string& path) const override {
    if (text.find(kMark) != text.npos || text.find(close_) != text.npos) refuse(path, "a string with a marker in it");
    return std::string(kMark).append(text).append(kMark);
  }
  std::vector<std::string> keys(const std::string& name) const override {
    if (!is_plain(name)) return {quoted(name, {})};
    return {name, quoted(name, {})};
  }
  std::string_view constant(const Json& value) const override {
    return value.is_null() ? "null" : *value.boolean() ? "true" : "false";
  }
  std::string close_;
};

void check_names(const Json& schema, const JsonSchemaOptions& options) {
  for (const Property& property : properties_of(schema, options)) {
    if (!is_plain(property.name)) refuse(property.path, "a parameter of this name");
  }
}

}  // namespace

Grammar python_arguments(const Json& schema, const JsonSchemaOptions& options) {
  check_names(schema, options);
  const Python python(schema, options);
  return Sequence().text("(").part(python.properties(schema, {}, "=", 0)).text(")").done();
}

Grammar brace_arguments(const Json& schema, std::string_view region_close, const JsonSchemaOptions& options) {
  check_names(schema, options);
  const Braces braces(schema, options, region_close);
  return Sequence().text("{").part(braces.properties(schema, {}, ":", 0)).text("}").done();
}

}  // namespace tessera::calls
