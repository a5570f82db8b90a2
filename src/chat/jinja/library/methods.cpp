// Methods of strings, dicts and lists: Python's methods that do not change their object. (jinja2's immutable sandbox also refuses methods
// that do.)
#include <algorithm>

#include "chat/jinja/strings.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace methods {  // a namespace, because some methods have the same names as filters
namespace {

using Method = Value (*)(Evaluator&, const Value& self, const Args&);

// --- Strings.

template <Ends ends>
Value strip(Evaluator& e, const Value& self, const Args& args) {
  const auto [characters] = args.bind<1>("strip", {"chars"});
  const bool given = !characters.is(Kind::undefined) && !characters.is(Kind::none);
  const std::string_view set = given ? need_string("strip", characters).bytes() : std::string_view();
  e.budget().spend_on(self.text().size() * (given ? 1 + set.size() : 1));
  const Extent left = stripped(self.bytes(), given ? &set : nullptr, ends);
  return part(e, self.text(), left.begin, left.end).as_safe(self.is_safe());
}

template <Case to>
Value recase(Evaluator& e, const Value& self, const Args& args) {
  (void)args.bind<0>("upper", {});
  return in_case(e, self.text(), to);
}
Value title(Evaluator& e, const Value& self, const Args& args) {
  (void)args.bind<0>("title", {});
  return titled(e, self.text());
}
Value capitalize(Evaluator& e, const Value& self, const Args& args) {
  (void)args.bind<0>("capitalize", {});
  return capitalized(e, self.text());
}

// Returns the range of bytes that find(), count() or startswith() searches, from their arguments start and end.
Extent window(Evaluator& e, const Value& self, const Value& start, const Value& end) {
  if (start.is(Kind::undefined) && end.is(Kind::undefined)) return {0, self.text().size()};
  const std::int64_t size = length(e.budget(), self);
  const auto place = [&](const Value& bound, std::int64_t absent) {
    if (bound.is(Kind::undefined) || bound.is(Kind::none)) return absent;
    const std::int64_t at = need_whole("find", bound);
    return std::clamp<std::int64_t>(at < 0 ? (at < -size ? 0 : at + size) : at, 0, size);
  };
  const std::size_t begin = character_offset(self.bytes(), static_cast<std::size_t>(place(start, 0)));
  const std::size_t stop = character_offset(self.bytes(), static_cast<std::size_t>(place(end, size)));
  return {begin, std::max(begin, stop)};
}

enum class End : std::uint8_t { start, end };

template <End where>
Value starts_or_ends(Evaluator& e, const Value& self, const Args& args) {
  const auto [affix, start, end] = args.bind<3>(where == End::start ? "startswith" : "endswith", {"prefix", "start", "end"}, 1);
  const Extent within = window(e, self, start, end);
  const std::string_view text = self.bytes().substr(within.begin, within.end - within.begin);
  const auto matches = [&](const Value& one) {
    const std::string_view bytes = need_string("startswith", one).bytes();
    e.budget().spend_on(bytes.size());
    return where == End::start ? text.starts_with(bytes) : text.ends_with(bytes);
  };
  if (!affix.is(Kind::tuple)) return Value::boolean(matches(affix));
  for (const Value& one : affix.items()) {
    if (matches(one)) return Value::boolean(true);
  }
  return Value::boolean(false);
}

enum class Search : std::uint8_t { find, rfind, index, rindex };

template <Search how>
Value find(Evaluator& e, const Value& self, const Args& args) {
  const auto [what, start, end] = args.bind<3>("find", {"sub", "start", "end"}, 1);
  const Extent within = window(e, self, start, end);
  const std::string_view text = self.bytes().substr(within.begin, within.end - within.begin);
  e.budget().spend_on(2 * text.size());
  const std::string_view bytes = need_string("find", what).bytes();
  const std::size_t at = how == Search::find || how == Search::index ? text.find(bytes) : text.rfind(bytes);
  if (at != text.npos) {
    return Value::integer(static_cast<std::int64_t>(count_characters(self.bytes().substr(0, within.begin + at))));
  }
  if (how == Search::index || how == Search::rindex) fail("the text is not found");
  return Value::integer(-1);
}

Value count(Evaluator& e, const Value& self, const Args& args) {
  const auto [what, start, end] = args.bind<3>("count", {"sub", "start", "end"}, 1);
  const Extent within = window(e, self, start, end);
  const std::string_view text = self.bytes().substr(within.begin, within.end - within.begin);
  const std::string_view bytes = need_string("count", what).bytes();
  e.budget().spend_on(2 * text.size());
  if (bytes.empty()) return Value::integer(static_cast<std::int64_t>(count_characters(text)) + 1);
  std::int64_t found = 0;
  for (std::size_t at = text.find(bytes); at != text.npos; at = text.find(bytes, at + bytes.size())) ++found;
  return Value::integer(found);
}

Value replace(Evaluator& e, const Value& self, const Args& args) {
  const auto [old, fresh, times] = args.bind<3>("replace", {"old", "new", "count"}, 2);
  const std::int64_t most = times.is(Kind::undefined) ? -1 : need_whole("replace", times);
  return replaced(e, self.text(), need_string("replace", old).text(), need_string("replace", fresh).text(), most);
}

// Splits the text at white space, and returns the words.
Values split_words(Evaluator& e, const Text& text, std::int64_t most, End from) {
  const std::string_view bytes = text.bytes();
  std::vector<Extent> words;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t begin = at;
    while (begin < bytes.size() && is_space(first_character(bytes.substr(begin)))) begin += character_size(bytes.substr(begin));
    std::size_t end = begin;
    while (end < bytes.size() && !is_space(first_character(bytes.substr(end)))) end += character_size(bytes.substr(end));
    if (begin == bytes.size()) break;
    e.budget().check((words.size() + 1) * sizeof(Extent) * 2);
    words.push_back({begin, end});
    at = end;
  }
  const std::size_t limit = most < 0 ? words.size() : static_cast<std::size_t>(most);
  Values out;
  if (words.size() <= limit) {
    for (const Extent& word : words) out.push_back(part(e, text, word.begin, word.end));
  } else if (from == End::start) {
    for (std::size_t i = 0; i < limit; ++i) out.push_back(part(e, text, words[i].begin, words[i].end));
    out.push_back(part(e, text, words[limit].begin, bytes.size()));
    // As in Python, the last part keeps the white space at its end.
  } else {
    const std::size_t rest = words.size() - limit;
    out.push_back(part(e, text, 0, words[rest - 1].end));
    for (std::size_t i = rest; i < words.size(); ++i) out.push_back(part(e, text, words[i].begin, words[i].end));
  }
  return out;
}

Values split_at(Evaluator& e, const Text& text, std::string_view separator, std::int64_t most, End from) {
  if (separator.empty()) fail("split() with an empty separator");
  const std::string_view bytes = text.bytes();
  Values out;
  if (from == End::start) {
    std::size_t at = 0;
    for (; most != 0; --most) {
      const std::size_t found = bytes.find(separator, at);
      if (found == bytes.npos) break;
      out.push_back(part(e, text, at, found));
      at = found + separator.size();
    }
    out.push_back(part(e, text, at, bytes.size()));
    return out;
  }
  std::size_t end = bytes.size();
  for (; most != 0 && end >= separator.size(); --most) {
    const std::size_t found = bytes.rfind(separator, end - separator.size());
    if (found == bytes.npos) break;
    out.push_back(part(e, text, found + separator.size(), end));
    end = found;
  }
  out.push_back(part(e, text, 0, end));
  std::reverse(out.begin(), out.end());
  return out;
}

template <End from>
Value split(Evaluator& e, const Value& self, const Args& args) {
  const auto [separator, times] = args.bind<2>("split", {"sep", "maxsplit"});
  const std::int64_t most = times.is(Kind::undefined) ? -1 : need_whole("split", times);
  e.budget().spend_on(2 * self.text().size());
  const bool words = separator.is(Kind::undefined) || separator.is(Kind::none);
  Values out = words ? split_words(e, self.text(), most, from)
                     : split_at(e, self.text(), need_string("split", separator).bytes(), most, from);
  return make_list(e.budget(), std::move(out));
}

Value splitlines(Evaluator& e, const Value& self, const Args& args) {
  const auto [keep] = args.bind<1>("splitlines", {"keepends"});
  Values out;
  for (const Line& line : lines_of(e, self.bytes())) {
    out.push_back(part(e, self.text(), line.begin, truth(keep) ? line.next : line.end));
  }
  return make_list(e.budget(), std::move(out));
}

template <End from>
Value partition(Evaluator& e, const Value& self, const Args& args) {
  const auto [separator] = args.bind<1>("partition", {"sep"}, 1);
  const Text& text = self.text();
  const std::string_view bytes = need_string("partition", separator).bytes();
  if (bytes.empty()) fail("partition() with an empty separator");
  e.budget().spend_on(2 * text.size());
  const std::size_t at = from == End::start ? text.bytes().find(bytes) : text.bytes().rfind(bytes);
  Values out;
  if (at != std::string_view::npos) {
    out = {part(e, text, 0, at), part(e, text, at, at + bytes.size()), part(e, text, at + bytes.size(), text.size())};
  } else if (from == End::start) {
    out = {self, e.string(""), e.string("")};
  } else {
    out = {e.string(""), e.string(""), self};
  }
  return make_tuple(e.budget(), std::move(out));
}

Value join(Evaluator& e, const Value& self, const Args& args) {
  const auto [items] = args.bind<1>("join", {"iterable"}, 1);
  if (items.is(Kind::undefined)) fail_undefined(items);
  Builder out(e.budget());
  bool first = true;
  for (const Value& item : iterate(e.budget(), items)) {
    if (!item.is(Kind::string)) fail(fmt::format("join() of a {}", type_name(item)));
    if (!first) out.add(self.text());
    first = false;
    out.add(item.text());
  }
  return out.finish();
}

template <End where>
Value remove_affix(Evaluator& e, const Value& self, const Args& args) {
  const auto [affix] = args.bind<1>("removeprefix", {"prefix"}, 1);
  const std::string_view text = self.bytes(), bytes = need_string("removeprefix", affix).bytes();
  if (where == End::start) return text.starts_with(bytes) ? part(e, self.text(), bytes.size(), text.size()) : self;
  return text.ends_with(bytes) ? part(e, self.text(), 0, text.size() - bytes.size()) : self;
}

Value format(Evaluator& e, const Value& self, const Args& args) { return brace_format(e, self.text(), args); }

enum class Align : std::uint8_t { left, right, center };

template <Align align>
Value justify(Evaluator& e, const Value& self, const Args& args) {
  const auto [width, fill] = args.bind<2>("ljust", {"width", "fillchar"}, 1);
  const std::int64_t missing = need_whole("ljust", width) - length(e.budget(), self);
  const Text blank(" ", TextOrigin::from_template);
  if (!fill.is(Kind::undefined) && length(e.budget(), need_string("ljust", fill)) != 1) fail("the fill is no character");
  const Text& with = fill.is(Kind::undefined) ? blank : fill.text();
  if (missing <= 0) return self;
  if (align == Align::left) return padded(e, self.text(), 0, missing, with);
  if (align == Align::right) return padded(e, self.text(), missing, 0, with);
  const std::int64_t left = missing / 2 + (missing & need_whole("center", width) & 1);
  return padded(e, self.text(), left, missing - left, with);
}

Value zfill(Evaluator& e, const Value& self, const Args& args) {
  const auto [width] = args.bind<1>("zfill", {"width"}, 1);
  const std::int64_t missing = need_whole("zfill", width) - length(e.budget(), self);
  if (missing <= 0) return self;
  const std::size_t sign = self.bytes().starts_with('-') || self.bytes().starts_with('+') ? 1 : 0;
  Builder out(e.budget());
  out.add(self.text(), 0, sign);
  out.add(padded(e, self.text().slice(sign, self.text().size()), missing, 0, Text("0", TextOrigin::from_template)).text());
  return out.finish();
}

// Implements isdigit() and the like: true if the text is not empty and all its characters pass the test.
template <bool (*Passes)(std::uint32_t)>
Value every(Evaluator& e, const Value& self, const Args& args) {
  (void)args.bind<0>("isdigit", {});
  e.budget().spend_on(4 * self.text().size());
  const std::string_view text = self.bytes();
  for (std::size_t at = 0; at < text.size(); at += character_size(text.substr(at))) {
    if (!Passes(first_character(text.substr(at)))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}
bool alnum(std::uint32_t c) { return is_alphabetic(c) || is_digit(c); }
bool digit(std::uint32_t c) { return is_digit(c); }
bool alpha(std::uint32_t c) { return is_alphabetic(c); }
bool space(std::uint32_t c) { return is_space(c); }
bool ascii(std::uint32_t c) { return c < 0x80; }

// --- Dicts and lists.

Value get(Evaluator& e, const Value& self, const Args& args) {
  auto [key, absent] = args.bind<2>("get", {"key", "default"}, 1);
  if (const Value* value = find_member(e.budget(), self.as<Dict>(), key)) return *value;
  return args.positional.size() > 1 || !args.keyword.empty() ? absent : Value::none();
}

Value view(Evaluator& e, Values values, std::string_view name) {
  return Value::object(Kind::dict_view, std::make_shared<DictView>(e.budget(), std::move(values), name));
}
Value keys(Evaluator& e, const Value& self, const Args& args) {
  (void)args.bind<0>("keys", {});
  return view(e, iterate(e.budget(), self), "dict_keys");
}
Value values(Evaluator& e, const Value& self, const Args& args) {
  (void)args.bind<0>("values", {});
  Values out;
  e.budget().spend(1 + self.members().size() / 4);
  for (const auto& member : self.members()) out.push_back(member.second);
  return view(e, std::move(out), "dict_values");
}
Value items(Evaluator& e, const Value& self, const Args& args) {
  (void)args.bind<0>("items", {});
  Values out;
  for (const auto& [key, value] : self.members()) out.push_back(make_tuple(e.budget(), {key, value}));
  return view(e, std::move(out), "dict_items");
}
Value copy(Evaluator&, const Value& self, const Args& args) {
  (void)args.bind<0>("copy", {});
  return self;
}

Value list_index(Evaluator& e, const Value& self, const Args& args) {
  const auto [what] = args.bind<1>("index", {"value"}, 1);
  for (std::size_t i = 0; i < self.items().size(); ++i) {
    if (equal(e.budget(), self.items()[i], what)) return Value::integer(static_cast<std::int64_t>(i));
  }
  fail("the value is not in the list");
}
Value list_count(Evaluator& e, const Value& self, const Args& args) {
  const auto [what] = args.bind<1>("count", {"value"}, 1);
  std::int64_t found = 0;
  for (const Value& item : self.items()) found += equal(e.budget(), item, what) ? 1 : 0;
  return Value::integer(found);
}

// --- The variable `loop`.

Value cycle(Evaluator&, const Value& self, const Args& args) {
  const auto& loop = self.as<Loop>();
  if (loop.items == nullptr) fail("`loop` is used after its loop has ended");
  if (args.positional.empty()) fail("loop.cycle() without values");
  return args.positional[loop.index % args.positional.size()];
}
Value changed(Evaluator& e, const Value& self, const Args& args) {
  const auto& loop = self.as<Loop>();
  if (loop.items == nullptr) fail("`loop` is used after its loop has ended");
  Value now = make_tuple(e.budget(), args.positional);
  const bool differs = !loop.seen || !equal(e.budget(), *loop.seen, now);
  loop.seen = std::move(now);
  return Value::boolean(differs);
}

struct BoundMethod : Callable {
  BoundMethod(Budget& budget, Value self_, Method method_)
      : Callable(budget, sizeof(BoundMethod), self_.is_list() || self_.is(Kind::dict) ? self_.identity()->depth() : 0),
        self(std::move(self_)), method(method_) {}
  Value call(Evaluator& evaluator, const Args& args) const override {
    evaluator.budget().spend(1);
    return method(evaluator, self, args);
  }
  Value self;
  Method method;
};

struct Entry {
  std::string_view name;
  Method method;
};

constexpr Entry kStrings[] = {
    {"strip", strip<Ends::both>}, {"lstrip", strip<Ends::left>}, {"rstrip", strip<Ends::right>},
    {"upper", recase<Case::upper>}, {"lower", recase<Case::lower>}, {"title", title}, {"capitalize", capitalize},
    {"startswith", starts_or_ends<End::start>}, {"endswith", starts_or_ends<End::end>},
    {"find", find<Search::find>}, {"rfind", find<Search::rfind>}, {"index", find<Search::index>},
    {"rindex", find<Search::rindex>}, {"count", count}, {"replace", replace}, {"split", split<End::start>},
    {"rsplit", split<End::end>}, {"splitlines", splitlines}, {"partition", partition<End::start>},
    {"rpartition", partition<End::end>}, {"join", join}, {"removeprefix", remove_affix<End::start>},
    {"removesuffix", remove_affix<End::end>}, {"format", format}, {"ljust", justify<Align::left>},
    {"rjust", justify<Align::right>}, {"center", justify<Align::center>}, {"zfill", zfill}, {"isdigit", every<digit>},
    {"isalpha", every<alpha>}, {"isalnum", every<alnum>}, {"isspace", every<space>}, {"isascii", every<ascii>},
};
constexpr Entry kDicts[] = {{"get", get}, {"keys", keys}, {"values", values}, {"items", items}, {"copy", copy}};
constexpr Entry kLists[] = {{"index", list_index}, {"count", list_count}, {"copy", copy}};
constexpr Entry kLoops[] = {{"cycle", cycle}, {"changed", changed}};

}  // namespace
}  // namespace methods

Value find_method(Evaluator& evaluator, const Value& of, std::string_view name) {
  using namespace methods;
  const auto among = [&](const auto& entries) -> Value {
    for (const Entry& entry : entries) {
      if (entry.name == name) {
        return Value::object(Kind::callable, std::make_shared<BoundMethod>(evaluator.budget(), of, entry.method));
      }
    }
    return {};
  };
  switch (of.kind()) {
    case Kind::string: return among(kStrings);
    case Kind::dict: return among(kDicts);
    case Kind::list:
    case Kind::tuple: return among(kLists);
    case Kind::loop: return among(kLoops);
    default: return {};
  }
}

}  // namespace tessera::jinja
