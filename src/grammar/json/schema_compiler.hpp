// Compiles one JSON Schema to a grammar, in three steps. The keywords are turned into alternatives, each of which is a conjunction of
// limits (keywords.cpp, combinations.cpp, negation.cpp). Alternatives that no value satisfies are found and dropped (decide.cpp). The
// others are written as forms of a grammar (write.cpp).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/grammar/grammar.hpp>

#include "grammar/json/conjunct.hpp"
#include "grammar/json/forms.hpp"
#include "grammar/json/references.hpp"
#include "grammar/json/schema_values.hpp"

namespace tessera::grammar {

class SchemaCompiler {
 public:
  SchemaCompiler(Ir& ir, const Json& root, const JsonSchemaOptions& options);
  [[nodiscard]] Form compile();

 private:
  struct Schema {
    const Json* json;
    std::string path;  // the schema's place in the document, such as "#/properties/a"
  };
  static constexpr Signed kNever = 1;  // the negation of schema 0, which is `true`: no value is valid

  // Return the id of a schema, and a set with only this schema.
  [[nodiscard]] std::uint32_t id_of(const Json& json, const std::string& path);
  [[nodiscard]] SchemaSet set_of(const Json& json, const std::string& path) { return {id_of(json, path) * 2}; }
  [[nodiscard]] static Signed negated(Signed s) noexcept { return s ^ 1u; }

  // --- Turn keywords into alternatives. Each of these functions may fail with ErrorCode::unsupported; the error has the keyword's path.
  [[nodiscard]] const Alternatives& alternatives(Signed schema);
  [[nodiscard]] Alternatives alternatives(const SchemaSet& set);
  [[nodiscard]] Alternatives of_schema(const Schema& schema);
  [[nodiscard]] Alternatives of_negated(const Schema& schema);
  [[nodiscard]] Alternatives some_item_breaks(const Json& each, const std::string& path, std::size_t from);
  [[nodiscard]] Alternatives some_member_breaks(const Schema& schema, const std::string& key, const Json& value);
  [[nodiscard]] Alternatives negated_dependencies(const Schema& schema, const std::string& key, const Json& all);
  [[nodiscard]] Alternatives negated_one_of(const Schema& schema, const Json& options);
  [[nodiscard]] Alternatives negated_conditional(const Schema& schema, const Json& condition);
  [[nodiscard]] Alternatives negated_composite(const Json& value, const std::string& path);
  // Returns a schema for which every value except `value` is valid.
  [[nodiscard]] Signed other_than(const Json& value, const std::string& path);
  [[nodiscard]] Alternatives negated_values(const Schema& schema, const std::string& key, const Json& value);
  [[nodiscard]] Conjunct limits(const Schema& schema);
  [[nodiscard]] Alternatives cross(const Alternatives& a, const Alternatives& b);
  void apply(Alternatives& into, const Alternatives& more) { into = cross(into, more); }
  void apply_one_of(Alternatives& into, const Schema& schema, const Json& options);
  void apply_conditional(Alternatives& into, const Schema& schema);
  void apply_dependencies(Alternatives& into, const Schema& schema);
  [[nodiscard]] Alternatives depends(const std::string& name, const Alternatives& then);

  // --- Read the keywords that limit values of one type.
  [[nodiscard]] std::uint8_t read_types(const Schema& schema, NumberLimits& number);
  void read_number(const Schema& schema, NumberLimits& out);
  void read_string(const Schema& schema, StringLimits& out);
  void read_array(const Schema& schema, ArrayLimits& out);
  void read_object(const Schema& schema, ObjectLimits& out);
  [[nodiscard]] std::uint32_t count(const Schema& schema, const char* key, std::uint32_t otherwise);
  [[nodiscard]] Regex format_content(const Schema& schema);  // kAll if there is no format, or it is not checked
  [[nodiscard]] Regex pattern_content(const std::string& pattern, const std::string& path);
  [[nodiscard]] Regex text(const std::string& value) { return store_.literal(value, Spelling::json); }
  [[nodiscard]] Regex plain(const std::string& value) { return store_.literal(value, Spelling::json_plain); }

  // --- Decide whether any value is valid.
  [[nodiscard]] bool is_empty(const Conjunct& c, unsigned depth);
  [[nodiscard]] bool is_empty(const SchemaSet& set, unsigned depth);
  [[nodiscard]] bool satisfies(const Json& value, const Conjunct& c);
  [[nodiscard]] bool satisfies(const Json& value, const SchemaSet& set);
  [[nodiscard]] Regex string_content(const StringLimits& limits);
  [[nodiscard]] Regex number_content(const NumberLimits& limits);
  [[nodiscard]] bool has_name(Regex key, const std::string& name);
  [[nodiscard]] SchemaSet schemas_of(const ObjectLimits& object, const std::string& name);
  [[nodiscard]] Regex names_content(const SchemaSet& names);
  [[nodiscard]] std::vector<const Json*> values_of(const Conjunct& c);

  // --- Write forms of the grammar.
  [[nodiscard]] Form write(const SchemaSet& set);
  [[nodiscard]] Form write(const Alternatives& alternatives);
  // A set of names that the schema does not list, and that all match the same patterns.
  struct Region {
    Regex names;
    SchemaSet schemas;
  };
  [[nodiscard]] Form write_array(const ArrayLimits& array);
  [[nodiscard]] Form write_object(const ObjectLimits& object);
  [[nodiscard]] ObjectForm object_form(const ObjectLimits& object, std::vector<Region>& regions);
  [[nodiscard]] std::vector<Region> regions_of(const ObjectLimits& object, Regex remaining);
  // Append to `out` the forms of lists in which some item must satisfy given schemas (ArrayLimits::Some), and of objects in which some
  // member must (ObjectLimits::Some; write_some.cpp). For each such demand, each form fixes the place of the item, or the name of the
  // member, that satisfies it.
  void write_some(const ArrayLimits& array, std::vector<Form>& out);
  void write_some(const ObjectLimits& object, std::vector<Form>& out);
  void place_some(ArrayLimits array, std::vector<ArrayLimits::Some> behind, std::vector<Form>& out);
  void place_some(ObjectLimits object, std::vector<ObjectLimits::Some> unnamed, std::vector<Form>& out);
  [[nodiscard]] Form items_behind(const ArrayLimits& array, std::uint32_t first, const std::vector<SchemaSet>& order);
  void members_unnamed(const ObjectLimits& object, const std::vector<ObjectLimits::Some>& unnamed, std::vector<Form>& out);
  void write_values(const std::vector<const Json*>& values, std::vector<Regex>& scalars, std::vector<Form>& forms);
  [[nodiscard]] Form write_value(const Json& value, unsigned depth);
  [[nodiscard]] Regex number_value(const Json& value);

  // Return a keyword's value, if it has the right type. Otherwise fail with invalid().
  [[nodiscard]] const std::string& text_in(const Schema& schema, std::string_view keyword, const Json& value) const;
  [[nodiscard]] const std::string& name_in(const Schema& schema, std::string_view keyword, const Json& value) const;
  [[nodiscard]] const Json::Array& list_in(const Schema& schema, std::string_view keyword, const Json& value) const;
  [[nodiscard]] const Json::Object& object_in(const Schema& schema, std::string_view keyword, const Json& value) const;
  // Returns the names that are listed in a value of `dependencies`; nullopt if the value is a schema instead.
  [[nodiscard]] std::optional<std::vector<std::string>> names_needed(const Schema& schema, std::string_view keyword, const Json& what);

  [[noreturn]] void unsupported(const Schema& schema, std::string_view keyword, std::string_view why) const;
  // Handles a keyword that is not supported: as the options say, either fails, or adds the keyword to the list of ignored ones.
  void refuse(const Schema& schema, std::string_view keyword, std::string_view why);
  [[noreturn]] void invalid(const Schema& schema, std::string_view keyword, std::string_view why) const;

  Ir& ir_;
  RegexStore& store_;
  JsonForms forms_;
  const Json& root_;
  std::deque<Json> made_;  // schemas that the compiler has made; they are not in the document
  JsonSchemaOptions options_;
  Draft draft_;
  bool assert_formats_;
  References references_;
  std::vector<Schema> schemas_;
  std::unordered_map<const Json*, std::uint32_t> ids_;
  std::unordered_map<Signed, Alternatives> known_;
  std::vector<Signed> open_;  // schemas that are being worked out; a $ref that leads back to one of them has no meaning
  std::map<SchemaSet, Form> written_;
  std::map<SchemaSet, bool> emptiness_;
  std::vector<std::pair<std::uint32_t, SchemaSet>> to_write_;  // rules whose bodies are still to be written
  Fuel fuel_{400'000};
};

}  // namespace tessera::grammar
