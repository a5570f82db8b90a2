// Filters for sequences: sorting, joining, slicing and the like.
#include <algorithm>
#include <array>

#include "chat/jinja/library/filters.hpp"
#include "chat/jinja/strings.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

Value join(Evaluator& e, const Value& value, const Args& args) {
  const auto [separator, attribute] = args.bind<2>("join", {"d", "attribute"});
  const Value between = to_string(e, separator);
  Builder out(e.budget());
  bool first = true;
  for (const Value& item : iterate(e.budget(), value)) {
    if (!first) out.add(between.text());
    first = false;
    append_string(e, out, given(attribute) ? attribute_path(e, item, attribute) : item);
  }
  return out.finish();
}

Value list(Evaluator& e, const Value& value, const Args&) { return make_list(e.budget(), iterate(e.budget(), value)); }

Value first(Evaluator& e, const Value& value, const Args&) {
  if (value.is(Kind::iterator)) {
    const auto& iterator = value.as<Iterator>();
    if (iterator.at < iterator.items.size()) return iterator.items[iterator.at++];
  } else if (const Values items = iterate(e.budget(), value); !items.empty()) {
    return items.front();
  }
  return make_missing(e.budget(), "the first item of an empty sequence");
}

Value last(Evaluator& e, const Value& value, const Args&) {
  if (value.is(Kind::iterator)) fail("a generator has no last item");
  if (value.is(Kind::undefined)) fail_undefined(value);
  const Values items = iterate(e.budget(), value);
  return items.empty() ? make_missing(e.budget(), "the last item of an empty sequence") : items.back();
}

Value reverse(Evaluator& e, const Value& value, const Args&) {
  if (value.is(Kind::iterator)) fail("a generator cannot be reversed");
  Values items = iterate(e.budget(), value);
  std::reverse(items.begin(), items.end());
  if (!value.is(Kind::string)) return make_iterator(e.budget(), std::move(items));
  Builder out(e.budget());
  for (const Value& item : items) out.add(item.text());
  return out.finish();
}

// Returns the value by which jinja2 sorts. Text is compared in lower case, unless `case_sensitive` is true.
Value sort_key(Evaluator& e, const Value& value, const Value& case_sensitive) {
  if (!value.is(Kind::string) || truth(case_sensitive)) return value;
  return in_case(e, value.text(), Case::lower);
}

// Returns the sort key of an item. Without an attribute, the item itself is the key. With attributes as a string ("a" or "a,b"), the key is
// a list of their values.
Value sort_keys(Evaluator& e, const Value& item, const Value& attribute, const Value& case_sensitive) {
  if (!given(attribute)) return sort_key(e, item, case_sensitive);
  if (!attribute.is(Kind::string)) return sort_key(e, attribute_path(e, item, attribute), case_sensitive);
  Values keys;
  for (std::string_view rest = attribute.bytes();;) {
    const std::size_t comma = rest.find(',');
    keys.push_back(sort_key(e, attribute_path(e, item, e.string(rest.substr(0, comma))), case_sensitive));
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  return make_list(e.budget(), std::move(keys));
}

struct Keyed {
  Value key, item;
};

void sort_by_key(Evaluator& e, std::vector<Keyed>& keyed, const Value& descending) {
  const bool down = truth(descending);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return down ? compare(e.budget(), b.key, a.key) < 0 : compare(e.budget(), a.key, b.key) < 0;
  });
}

Value items_of(Evaluator& e, std::vector<Keyed>& keyed) {
  Values out;
  for (Keyed& one : keyed) out.push_back(std::move(one.item));
  return make_list(e.budget(), std::move(out));
}

Value sort(Evaluator& e, const Value& value, const Args& args) {
  const auto [descending, case_sensitive, attribute] = args.bind<3>("sort", {"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> keyed;
  for (const Value& item : iterate(e.budget(), value)) keyed.push_back({sort_keys(e, item, attribute, case_sensitive), item});
  sort_by_key(e, keyed, descending);
  return items_of(e, keyed);
}

Value dictsort(Evaluator& e, const Value& value, const Args& args) {
  const auto [case_sensitive, by, descending] = args.bind<3>("dictsort", {"case_sensitive", "by", "reverse"});
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (!value.is(Kind::dict)) fail(fmt::format("dictsort() of a {}", type_name(value)));
  const std::string_view which = by.is(Kind::undefined) ? "key" : need_string("dictsort", by).bytes();
  if (which != "key" && which != "value") fail("dictsort() sorts by 'key' or 'value'");
  std::vector<Keyed> keyed;
  for (const auto& [key, item] : value.members()) {
    keyed.push_back({sort_key(e, which == "key" ? key : item, case_sensitive), make_tuple(e.budget(), {key, item})});
  }
  sort_by_key(e, keyed, descending);
  return items_of(e, keyed);
}

Value unique(Evaluator& e, const Value& value, const Args& args) {
  const auto [case_sensitive, attribute] = args.bind<2>("unique", {"case_sensitive", "attribute"});
  Values out, seen;
  for (const Value& item : iterate(e.budget(), value)) {
    Value key = sort_key(e, given(attribute) ? attribute_path(e, item, attribute) : item, case_sensitive);
    const auto same = [&](const Value& other) { return equal(e.budget(), key, other); };
    if (std::any_of(seen.begin(), seen.end(), same)) continue;
    seen.push_back(std::move(key));
    out.push_back(item);
  }
  return make_iterator(e.budget(), std::move(out));
}

enum class Extreme : std::uint8_t { least, most };

template <Extreme which>
Value extreme(Evaluator& e, const Value& value, const Args& args) {
  const auto [case_sensitive, attribute] = args.bind<2>("min", {"case_sensitive", "attribute"});
  const Values items = iterate(e.budget(), value);
  if (items.empty()) return make_missing(e.budget(), "the least or greatest of nothing");
  const Value* best = nullptr;
  Value best_key;
  for (const Value& item : items) {
    Value key = sort_key(e, given(attribute) ? attribute_path(e, item, attribute) : item, case_sensitive);
    if (best != nullptr) {
      const int order = compare(e.budget(), key, best_key);
      if (which == Extreme::least ? order >= 0 : order <= 0) continue;
    }
    best = &item;
    best_key = std::move(key);
  }
  return *best;
}

Value sum(Evaluator& e, const Value& value, const Args& args) {
  const auto [attribute, start] = args.bind<2>("sum", {"attribute", "start"});
  Value total = start.is(Kind::undefined) ? Value::integer(0) : start;
  if (total.is(Kind::string)) fail("sum() of strings");
  for (const Value& item : iterate(e.budget(), value)) {
    e.budget().spend(1);
    total = arithmetic(e.budget(), ExprKind::add, total, given(attribute) ? attribute_path(e, item, attribute) : item);
  }
  return total;
}

Value batch(Evaluator& e, const Value& value, const Args& args) {
  const auto [size, fill] = args.bind<2>("batch", {"linecount", "fill_with"}, 1);
  const std::int64_t width = need_whole("batch", size);
  Values out, line;
  const auto flush = [&] { out.push_back(make_list(e.budget(), std::exchange(line, {}))); };
  for (const Value& item : iterate(e.budget(), value)) {
    if (static_cast<std::int64_t>(line.size()) == width) flush();
    line.push_back(item);
  }
  if (!line.empty()) {
    if (given(fill) && width > 0) {
      e.budget().check(static_cast<std::uint64_t>(std::min<std::int64_t>(width, 1'000'000'000)) * sizeof(Value));
      while (static_cast<std::int64_t>(line.size()) < width) line.push_back(fill);
    }
    flush();
  }
  return make_iterator(e.budget(), std::move(out));
}

Value slice(Evaluator& e, const Value& value, const Args& args) {
  const auto [count, fill] = args.bind<2>("slice", {"slices", "fill_with"}, 1);
  const std::int64_t slices = need_whole("slice", count);
  if (slices <= 0) fail("slice() into no parts");
  const Values items = iterate(e.budget(), value);
  const auto size = static_cast<std::int64_t>(items.size());
  const std::int64_t each = size / slices, longer = size % slices;
  Values out;
  for (std::int64_t i = 0, at = 0; i < slices; ++i) {
    e.budget().spend(1);
    const std::int64_t next = at + each + (i < longer);
    Values part(items.begin() + at, items.begin() + next);
    if (given(fill) && i >= longer) part.push_back(fill);
    out.push_back(make_list(e.budget(), std::move(part)));
    at = next;
  }
  return make_iterator(e.budget(), std::move(out));
}

Value items(Evaluator& e, const Value& value, const Args&) {
  Values out;
  if (value.is(Kind::undefined)) return make_iterator(e.budget(), std::move(out));
  if (!value.is(Kind::dict)) fail(fmt::format("items() of a {}", type_name(value)));
  for (const auto& [key, item] : value.members()) out.push_back(make_tuple(e.budget(), {key, item}));
  return make_iterator(e.budget(), std::move(out));
}

constexpr Filter kSequenceFilters[] = {
    {"join", join}, {"list", list}, {"first", first}, {"last", last}, {"reverse", reverse}, {"sort", sort},
    {"dictsort", dictsort}, {"unique", unique}, {"min", extreme<Extreme::least>}, {"max", extreme<Extreme::most>},
    {"sum", sum}, {"batch", batch}, {"slice", slice}, {"items", items},
};

}  // namespace

std::span<const Filter> sequence_filters() noexcept { return kSequenceFilters; }

}  // namespace tessera::jinja
