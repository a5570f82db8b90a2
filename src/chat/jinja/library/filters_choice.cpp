// Filters that call other filters and tests by name: map, select, reject and the like.
#include "chat/jinja/library/filters.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

// Returns the arguments without the first `count`.
Args rest_of(const Args& args, std::size_t count) {
  Args rest;
  rest.positional.assign(args.positional.begin() + static_cast<std::ptrdiff_t>(count), args.positional.end());
  rest.keyword = args.keyword;
  return rest;
}

Value map(Evaluator& e, const Value& value, const Args& args) {
  Values out;
  if (!truth(value)) return make_iterator(e.budget(), std::move(out));
  if (args.positional.empty()) {
    Value attribute, fallback;
    for (const auto& [name, given] : args.keyword) {
      if (name == "attribute") attribute = given;
      else if (name == "default") fallback = given;
      else fail(fmt::format("map() has no argument '{}'", name.substr(0, 40)));
    }
    if (attribute.is(Kind::undefined)) fail("map() needs a filter or an attribute");
    for (const Value& item : iterate(e.budget(), value)) {
      Value found = attribute_path(e, item, attribute);
      out.push_back(found.is(Kind::undefined) && given(fallback) ? fallback : std::move(found));
    }
    return make_iterator(e.budget(), std::move(out));
  }
  if (!args.positional[0].is(Kind::string)) fail("map() needs the name of a filter");
  const Args rest = rest_of(args, 1);
  for (const Value& item : iterate(e.budget(), value)) {
    e.budget().spend(1);
    out.push_back(e.apply_filter(args.positional[0].bytes(), item, rest));
  }
  return make_iterator(e.budget(), std::move(out));
}

enum class Of : std::uint8_t { item, attribute };

template <Of of, bool wanted>
Value choose(Evaluator& e, const Value& value, const Args& args) {
  constexpr std::size_t test_at = of == Of::attribute ? 1 : 0;
  Values out;
  if (!truth(value)) return make_iterator(e.budget(), std::move(out));
  if (args.positional.size() < test_at) fail("the name of an attribute is missing");
  const bool has_test = args.positional.size() > test_at;
  if (has_test && !args.positional[test_at].is(Kind::string)) fail("a test is named by a string");
  const Args rest = has_test ? rest_of(args, test_at + 1) : Args{};
  for (const Value& item : iterate(e.budget(), value)) {
    e.budget().spend(1);
    const Value subject = of == Of::attribute ? attribute_path(e, item, args.positional[0]) : item;
    const bool passes = has_test ? e.apply_test(args.positional[test_at].bytes(), subject, rest) : truth(subject);
    if (passes == wanted) out.push_back(item);
  }
  return make_iterator(e.budget(), std::move(out));
}

constexpr Filter kChoiceFilters[] = {
    {"map", map},
    {"select", choose<Of::item, true>},
    {"reject", choose<Of::item, false>},
    {"selectattr", choose<Of::attribute, true>},
    {"rejectattr", choose<Of::attribute, false>},
};

}  // namespace

std::span<const Filter> choice_filters() noexcept { return kChoiceFilters; }

}  // namespace tessera::jinja
