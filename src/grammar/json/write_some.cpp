// Writes grammar forms for demands on some item or some member: at least one item of a list, or at least one member of an object, must
// satisfy given schemas (ArrayLimits::Some, ObjectLimits::Some). For example, a schema's "contains" is a demand on a list. In a list's
// form, the item that satisfies the demand gets a place of its own, with any other items before and after that place. In an object's form,
// the member that satisfies the demand becomes a required property with many possible names.
#include <algorithm>

#include "grammar/json/schema_compiler.hpp"

namespace tessera::grammar {

namespace {

constexpr std::uint32_t kMostPlaces = 64;
constexpr std::size_t kMostForms = 600, kMostSome = 4;

void check(std::size_t forms, std::size_t some) {
  if (forms > kMostForms || some > kMostSome) out_of_fuel("it asks in too many ways for some item or some member");
}

// Returns all ways to divide n things into groups. In each result, entry i is the number of the group of thing i. A group gets its number
// when its first thing comes, so for n = 2 the results are {0, 0} and {0, 1}.
std::vector<std::vector<std::size_t>> groupings(std::size_t n) {
  std::vector<std::vector<std::size_t>> out{{}};
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<std::vector<std::size_t>> next;
    for (const auto& groups : out) {
      const std::size_t known = groups.empty() ? 0 : *std::max_element(groups.begin(), groups.end()) + 1;
      for (std::size_t g = 0; g <= known; ++g) {
        next.push_back(groups);
        next.back().push_back(g);
      }
    }
    out = std::move(next);
  }
  return out;
}

}  // namespace

void SchemaCompiler::write_some(const ArrayLimits& array, std::vector<Form>& out) {
  if (array.some.empty()) return out.push_back(write_array(array));
  place_some(array, {}, out);
}

// Writes one form for each way to place the demands of array.some. A demand has two kinds of places. Either the item with a certain index
// satisfies it, where the index is below `first`; or some item after the first `first` items does. `behind`: the demands that were
// already placed after the first `first` items.
void SchemaCompiler::place_some(ArrayLimits array, std::vector<ArrayLimits::Some> behind, std::vector<Form>& out) {
  fuel_.spend(20, "it asks in too many ways for some item or some member");
  std::uint32_t first = std::max(static_cast<std::uint32_t>(array.prefix.size()), array.min == 0 ? 0 : array.min - 1);
  for (const auto& some : array.some) first = std::max(first, some.from);
  for (const auto& some : behind) first = std::max(first, some.from);
  if (array.max != kUnlimited) first = array.max;
  if (array.some.empty()) {
    if (behind.empty()) return out.push_back(write_array(array));
    for (const auto& groups : groupings(behind.size())) {
      std::vector<SchemaSet> order(*std::max_element(groups.begin(), groups.end()) + 1, array.rest);
      for (std::size_t i = 0; i < groups.size(); ++i) add_all(order[groups[i]], behind[i].schemas);
      std::sort(order.begin(), order.end());
      do {
        out.push_back(items_behind(array, first, order));
        check(out.size(), behind.size());
      } while (std::next_permutation(order.begin(), order.end()));
    }
    return;
  }
  const ArrayLimits::Some some = array.some.back();
  array.some.pop_back();
  if (first > some.from + kMostPlaces) out_of_fuel("some item of a long list is asked for");
  for (std::uint32_t i = some.from; i < first; ++i) {
    ArrayLimits placed = array;
    while (placed.prefix.size() <= i) placed.prefix.push_back(placed.rest);
    add_all(placed.prefix[i], some.schemas);
    if (is_empty(placed.prefix[i], 3)) continue;
    placed.min = std::max(placed.min, i + 1);
    place_some(std::move(placed), behind, out);
    check(out.size(), 0);
  }
  if (array.max != kUnlimited) return;
  behind.push_back(some);
  check(out.size(), behind.size());
  place_some(std::move(array), std::move(behind), out);
}

// Returns the form of lists that begin with `first` items or more. After these come, in the order of `order`, items that satisfy the
// entries of `order` (one item for each entry). Any items may come between them and after them.
Form SchemaCompiler::items_behind(const ArrayLimits& array, std::uint32_t first, const std::vector<SchemaSet>& order) {
  const Form comma = ir_.regex(forms_.comma()), any = write(array.rest);
  ListForm head{.prefix = {}, .rest = any, .min = std::max(first, 1u), .separator = forms_.comma()};
  for (std::uint32_t i = 0; i < first; ++i) head.prefix.push_back(i < array.prefix.size() ? write(array.prefix[i]) : any);
  const Form before = ir_.sequence({ir_.list(std::move(head)), comma});
  const Form more = ir_.repeat(ir_.sequence({comma, any}), 0, kUnlimited);
  std::vector<Form> parts{ir_.regex(forms_.token("[")), first > 0 ? before : ir_.repeat(before, 0, 1)};
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0) parts.push_back(comma);
    parts.push_back(write(order[i]));
    parts.push_back(more);
  }
  parts.push_back(ir_.regex(forms_.token("]")));
  return ir_.sequence(parts);
}

void SchemaCompiler::write_some(const ObjectLimits& object, std::vector<Form>& out) {
  if (object.some.empty()) return out.push_back(write_object(object));
  place_some(object, {}, out);
}

// Writes one form for each way to place the demands of object.some. A demand is placed either at one of the properties that the schema
// lists (this property satisfies it), or at a member that the schema does not list. `unnamed`: the demands that were already placed at
// members that the schema does not list.
void SchemaCompiler::place_some(ObjectLimits object, std::vector<ObjectLimits::Some> unnamed, std::vector<Form>& out) {
  fuel_.spend(20 + object.properties.size(), "it asks in too many ways for some item or some member");
  if (object.some.empty()) {
    if (unnamed.empty()) return out.push_back(write_object(object));
    return members_unnamed(object, unnamed, out);
  }
  const ObjectLimits::Some some = object.some.back();
  object.some.pop_back();
  std::vector<std::string> names = object.required;
  for (const auto& property : object.properties) names.push_back(property.name);
  for (const auto& more : object.additional) names.insert(names.end(), more.names.begin(), more.names.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    if (!has_name(some.key, name)) continue;
    ObjectLimits placed = object;
    const auto known = std::find_if(placed.properties.begin(), placed.properties.end(), [&](const auto& p) { return p.name == name; });
    if (known != placed.properties.end()) {
      add_all(known->schemas, some.schemas);
    } else {
      placed.properties.push_back({name, some.schemas});
    }
    if (is_empty(schemas_of(placed, name), 3)) continue;
    if (std::find(placed.required.begin(), placed.required.end(), name) == placed.required.end()) placed.required.push_back(name);
    place_some(std::move(placed), unnamed, out);
    check(out.size(), 0);
  }
  unnamed.push_back(some);
  check(out.size(), unnamed.size());
  place_some(std::move(object), std::move(unnamed), out);
}

void SchemaCompiler::members_unnamed(const ObjectLimits& object, const std::vector<ObjectLimits::Some>& unnamed, std::vector<Form>& out) {
  std::vector<Region> regions;
  const ObjectForm plain = object_form(object, regions);
  for (const auto& groups : groupings(unnamed.size())) {
    std::vector<ObjectForm> made{plain};
    for (std::size_t g = 0; g <= *std::max_element(groups.begin(), groups.end()); ++g) {
      Region asked{RegexStore::kAll, {}};
      for (std::size_t i = 0; i < groups.size(); ++i) {
        if (groups[i] != g) continue;
        asked.names = store_.both(asked.names, unnamed[i].key);
        add_all(asked.schemas, unnamed[i].schemas);
      }
      std::vector<ObjectForm> next;
      for (const Region& region : regions) {
        const Regex names = store_.both(region.names, asked.names);
        SchemaSet schemas = region.schemas;
        add_all(schemas, asked.schemas);
        if (store_.is_empty(names) || is_empty(schemas, 3)) continue;
        const Form value = write(schemas);
        for (const ObjectForm& form : made) {
          next.push_back(form);
          next.back().properties.push_back({forms_.key(names), value, true, ObjectForm::Place::anywhere});
          check(out.size() + next.size(), 0);
        }
      }
      made = std::move(next);
    }
    for (ObjectForm& form : made) out.push_back(forms_.object(std::move(form)));
  }
}

}  // namespace tessera::grammar
