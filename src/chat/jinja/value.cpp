#include "chat/jinja/value.hpp"

#include <algorithm>
#include <compare>

#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

constexpr std::uint32_t kDeepestValue = 200;    // limit for containers within containers
constexpr std::size_t kPlainSearch = 16;   // dicts with at most this many members are searched from the beginning

std::uint32_t depth_of(const Value& value) {
  switch (value.kind()) {
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::iterator:
    case Kind::dict_view:
    case Kind::callable: return value.identity()->depth();
    default: return 0;
  }
}

std::uint32_t over(std::uint32_t deepest) {
  if (deepest >= kDeepestValue) {
    fail(fmt::format("values nested more than {} deep", kDeepestValue), ErrorCode::over_budget);
  }
  return deepest + 1;
}
std::uint32_t depth_over(const Values& items) {
  std::uint32_t deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, depth_of(item));
  return over(deepest);
}
std::uint32_t depth_over(const Members& members) {
  std::uint32_t deepest = 0;
  for (const auto& [key, value] : members) deepest = std::max({deepest, depth_of(key), depth_of(value)});
  return over(deepest);
}

// Orders keys in some total order, so that they can be searched. As in Python, 1, 1.0 and true are the same key.
std::strong_ordering key_order(Budget& budget, const Value& a, const Value& b) {
  const auto rank = [](const Value& v) { return v.is_number() ? 0 : static_cast<int>(v.kind()) + 1; };
  if (const auto order = rank(a) <=> rank(b); order != 0) return order;
  if (a.is_whole() && b.is_whole()) return a.whole() <=> b.whole();
  if (a.is_number()) return std::strong_order(a.number(), b.number());
  if (a.is(Kind::string) || a.is(Kind::big_integer)) return a.bytes().compare(b.bytes()) <=> 0;
  if (a.is(Kind::tuple)) {
    for (std::size_t i = 0; i < std::min(a.items().size(), b.items().size()); ++i) {
      budget.spend(1);
      if (const auto order = key_order(budget, a.items()[i], b.items()[i]); order != 0) return order;
    }
    return a.items().size() <=> b.items().size();
  }
  return std::compare_three_way()(a.identity(), b.identity());
}

void check_key(const Value& key) {
  switch (key.kind()) {
    case Kind::list:
    case Kind::dict:
    case Kind::dict_view: fail(fmt::format("a {} cannot be a key", type_name(key)));
    case Kind::tuple:
      for (const Value& item : key.items()) check_key(item);
      return;
    default: return;
  }
}

}  // namespace

List::List(Budget& budget, Values of)
    : Object(budget, sizeof(DictView) + of.capacity() * sizeof(Value), depth_over(of)), items(std::move(of)) {}
Dict::Dict(Budget& budget, Members of)
    : Object(budget, sizeof(Dict) + of.capacity() * (sizeof(Members::value_type) + sizeof(std::uint32_t)), depth_over(of)),
      members(std::move(of)) {}
Iterator::Iterator(Budget& budget, Values of)
    : Object(budget, sizeof(Iterator) + of.capacity() * sizeof(Value), depth_over(of)), items(std::move(of)) {}

const Text& Value::text() const noexcept { return as<String>().text; }
const Values& Value::items() const noexcept { return as<List>().items; }
const Members& Value::members() const noexcept { return as<Dict>().members; }

Value make_string(Budget& budget, Text text) {
  budget.spend_on(text.size());
  return Value::object(Kind::string, std::make_shared<String>(budget, std::move(text)));
}
Value make_string(Budget& budget, std::string_view bytes, TextOrigin origin) {
  budget.check(bytes.size());
  return make_string(budget, Text(std::string(bytes), origin));
}
Value make_list(Budget& budget, Values items) {
  budget.spend(1 + items.size() / 4);
  return Value::object(Kind::list, std::make_shared<List>(budget, std::move(items)));
}
Value make_tuple(Budget& budget, Values items) {
  budget.spend(1 + items.size() / 4);
  return Value::object(Kind::tuple, std::make_shared<List>(budget, std::move(items)));
}
Value make_iterator(Budget& budget, Values items) {
  budget.spend(1 + items.size() / 4);
  return Value::object(Kind::iterator, std::make_shared<Iterator>(budget, std::move(items)));
}
Value make_missing(Budget& budget, std::string why) {
  return Value::object(Kind::undefined, std::make_shared<Missing>(budget, std::move(why)));
}

Value make_dict(Budget& budget, Members members) {
  for (const auto& member : members) check_key(member.first);
  std::vector<std::uint32_t> order(members.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    budget.spend(1);
    const auto by_key = key_order(budget, members[a].first, members[b].first);
    return by_key != 0 ? by_key < 0 : a < b;
  });
  // If a key occurs more than once, it keeps its first place and gets the last value.
  bool doubled = false;
  std::vector<bool> dropped(members.size());
  for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
    if (key_order(budget, members[order[first]].first, members[order[i]].first) != 0) {
      first = i;
      continue;
    }
    members[order[first]].second = members[order[i]].second;
    dropped[order[i]] = doubled = true;
  }
  if (doubled) {
    Members kept;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!dropped[i]) kept.push_back(std::move(members[i]));
    }
    return make_dict(budget, std::move(kept));
  }
  auto dict = std::make_shared<Dict>(budget, std::move(members));
  if (order.size() > kPlainSearch) dict->order = std::move(order);
  return Value::object(Kind::dict, std::move(dict));
}

const Value* find_member(Budget& budget, const Dict& dict, const Value& key) {
  check_key(key);
  const auto& members = dict.members;
  if (dict.order.empty()) {
    budget.spend(1);
    for (const auto& member : members) {
      if (key_order(budget, member.first, key) == 0) return &member.second;
    }
    return nullptr;
  }
  budget.spend(4);
  const auto at = std::lower_bound(dict.order.begin(), dict.order.end(), key, [&](std::uint32_t i, const Value& k) {
    return key_order(budget, members[i].first, k) < 0;
  });
  if (at == dict.order.end() || key_order(budget, members[*at].first, key) != 0) return nullptr;
  return &members[*at].second;
}

const Value* find_member(Budget& budget, const Dict& dict, std::string_view key) {
  if (dict.order.empty()) {
    budget.spend(1);
    for (const auto& member : dict.members) {
      if (member.first.is(Kind::string) && member.first.bytes() == key) return &member.second;
    }
    return nullptr;
  }
  return find_member(budget, dict, make_string(budget, key));
}

std::string_view type_name(const Value& value) noexcept {
  switch (value.kind()) {
    case Kind::undefined: return "Undefined";
    case Kind::none: return "NoneType";
    case Kind::boolean: return "bool";
    case Kind::integer:
    case Kind::big_integer: return "int";
    case Kind::floating: return "float";
    case Kind::string: return "str";
    case Kind::list: return "list";
    case Kind::tuple: return "tuple";
    case Kind::dict: return "dict";
    case Kind::range: return "range";
    case Kind::iterator: return "generator";
    case Kind::dict_view: return value.as<DictView>().name;
    case Kind::name_space: return "Namespace";
    case Kind::loop: return "LoopContext";
    case Kind::callable: return "function";
  }
  return "object";
}

void fail_undefined(const Value& value) {
  fail(value.identity() != nullptr ? value.as<Missing>().why : "an undefined value is used");
}

bool truth(const Value& value) noexcept {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean:
    case Kind::integer: return value.whole() != 0;
    case Kind::floating: return value.number() != 0;
    case Kind::string: return !value.text().empty();
    case Kind::list:
    case Kind::tuple:
    case Kind::dict_view: return !value.items().empty();
    case Kind::dict: return !value.members().empty();
    case Kind::range: return value.as<Range>().size != 0;
    default: return true;
  }
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is_number() && b.is_number()) {
    return a.is_whole() && b.is_whole() ? a.whole() == b.whole() : a.number() == b.number();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none: return true;
    case Kind::big_integer:
    case Kind::string:
      budget.spend_on(std::min(a.text().size(), b.text().size()));
      return a.bytes() == b.bytes();
    case Kind::list:
    case Kind::tuple:
    case Kind::dict_view: {
      const Values &left = a.items(), &right = b.items();
      if (left.size() != right.size()) return false;
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (!equal(budget, left[i], right[i])) return false;
      }
      return true;
    }
    case Kind::dict: {
      if (a.members().size() != b.members().size()) return false;
      for (const auto& [key, value] : a.members()) {
        const Value* other = find_member(budget, b.as<Dict>(), key);
        if (other == nullptr || !equal(budget, value, *other)) return false;
      }
      return true;
    }
    case Kind::range: {
      const auto &x = a.as<Range>(), &y = b.as<Range>();
      return x.size == y.size && (x.size == 0 || (x.start == y.start && (x.size == 1 || x.step == y.step)));
    }
    case Kind::name_space: return &a.pointed<char>() == &b.pointed<char>();
    default: return a.identity() == b.identity();
  }
}

int compare(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (a.is(Kind::undefined)) fail_undefined(a);
  if (b.is(Kind::undefined)) fail_undefined(b);
  if (a.is_number() && b.is_number()) {
    if (a.is_whole() && b.is_whole()) return a.whole() < b.whole() ? -1 : a.whole() > b.whole();
    return a.number() < b.number() ? -1 : a.number() > b.number();
  }
  if (a.is(Kind::string) && b.is(Kind::string)) {
    budget.spend_on(std::min(a.text().size(), b.text().size()));
    return a.bytes().compare(b.bytes());  // comparing UTF-8 by bytes gives the order of code points
  }
  if (a.is_list() && a.kind() == b.kind()) {
    const Values &left = a.items(), &right = b.items();
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      if (!equal(budget, left[i], right[i])) return compare(budget, left[i], right[i]);
    }
    return left.size() < right.size() ? -1 : left.size() > right.size();
  }
  fail(fmt::format("a {} and a {} have no order", type_name(a), type_name(b)));
}

bool is_iterable(const Value& value) noexcept {
  switch (value.kind()) {
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::floating:
    case Kind::big_integer:
    case Kind::name_space:
    case Kind::callable: return false;
    default: return true;
  }
}

Values iterate(Budget& budget, const Value& value) {
  Values out;
  const auto room = [&](std::size_t count) {
    budget.spend(1 + count / 4);
    budget.check(count * sizeof(Value));
    out.reserve(count);
  };
  switch (value.kind()) {
    case Kind::undefined: return out;
    case Kind::list:
    case Kind::tuple:
    case Kind::dict_view:
      room(value.items().size());
      out = value.items();
      return out;
    case Kind::dict:
      room(value.members().size());
      for (const auto& member : value.members()) out.push_back(member.first);
      return out;
    case Kind::string: {
      const Text& text = value.text();
      room(count_characters(text.bytes()));
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t next = at + character_size(text.bytes().substr(at));
        out.push_back(make_string(budget, text.slice(at, next)).as_safe(value.is_safe()));
        at = next;
      }
      return out;
    }
    case Kind::range: {
      const auto& range = value.as<Range>();
      room(static_cast<std::size_t>(range.size));
      for (std::int64_t i = 0; i < range.size; ++i) out.push_back(Value::integer(range.start + i * range.step));
      return out;
    }
    case Kind::iterator: {
      const auto& iterator = value.as<Iterator>();
      room(iterator.items.size() - iterator.at);
      out.assign(iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.at), iterator.items.end());
      iterator.at = iterator.items.size();
      return out;
    }
    case Kind::loop: fail("iterating over `loop` itself is not supported", ErrorCode::unsupported);
    default: fail(fmt::format("a {} cannot be iterated over", type_name(value)));
  }
}

std::int64_t length(Budget& budget, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return 0;
    case Kind::string:
      budget.spend_on(value.text().size());
      return static_cast<std::int64_t>(count_characters(value.bytes()));
    case Kind::list:
    case Kind::tuple:
    case Kind::dict_view: return static_cast<std::int64_t>(value.items().size());
    case Kind::dict: return static_cast<std::int64_t>(value.members().size());
    case Kind::range: return value.as<Range>().size;
    default: fail(fmt::format("a {} has no length", type_name(value)));
  }
}

}  // namespace tessera::jinja
