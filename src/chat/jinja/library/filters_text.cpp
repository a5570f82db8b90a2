// Filters whose result is text.
#include <array>

#include "chat/jinja/library/filters.hpp"
#include "chat/jinja/strings.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

Value string(Evaluator& e, const Value& value, const Args&) { return to_string(e, value); }

Value trim(Evaluator& e, const Value& value, const Args& args) {
  const auto [characters] = args.bind<1>("trim", {"chars"});
  const Value text = to_string(e, value);
  const std::string_view set = given(characters) ? need_string("trim", characters).bytes() : std::string_view();
  e.budget().spend_on(text.text().size() * (1 + set.size()));
  const Extent left = stripped(text.bytes(), given(characters) ? &set : nullptr, Ends::both);
  return part(e, text.text(), left.begin, left.end).as_safe(text.is_safe());
}

Value upper(Evaluator& e, const Value& value, const Args&) { return in_case(e, to_string(e, value).text(), Case::upper); }
Value lower(Evaluator& e, const Value& value, const Args&) { return in_case(e, to_string(e, value).text(), Case::lower); }
Value capitalize(Evaluator& e, const Value& value, const Args&) { return capitalized(e, to_string(e, value).text()); }

// Returns the text with each word's first letter in upper case. As in jinja2, a word begins after white space, a hyphen or an opening
// bracket.
Value title(Evaluator& e, const Value& value, const Args&) {
  const Value whole = to_string(e, value);
  const Text& text = whole.text();
  const auto is_gap = [&](std::size_t at) {
    const std::uint32_t c = first_character(text.bytes().substr(at));
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  Builder out(e.budget());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(text.bytes().substr(at));
    if (is_gap(at)) {
      out.add(text, at, at + size);
      at += size;
      continue;
    }
    std::size_t end = at + size;
    while (end < text.size() && !is_gap(end)) end += character_size(text.bytes().substr(end));
    out.add(in_case(e, text.slice(at, at + size), Case::upper).text());
    out.add(in_case(e, text.slice(at + size, end), Case::lower).text());
    at = end;
  }
  return out.finish();
}

Value replace(Evaluator& e, const Value& value, const Args& args) {
  const auto [old, fresh, times] = args.bind<3>("replace", {"old", "new", "count"}, 2);
  const std::int64_t most = given(times) ? need_whole("replace", times) : -1;
  return replaced(e, to_string(e, value).text(), to_string(e, old).text(), to_string(e, fresh).text(), most);
}

Value indent(Evaluator& e, const Value& value, const Args& args) {
  const auto [width, first, blank] = args.bind<3>("indent", {"width", "first", "blank"});
  Text by;
  if (width.is(Kind::string)) {
    by = width.text();
  } else {
    const std::int64_t blanks = width.is(Kind::undefined) ? 4 : need_whole("indent", width);
    if (blanks > 10'000) fail("an indent wider than 10000", ErrorCode::over_budget);
    by = Text(std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, blanks)), ' '), TextOrigin::from_template);
  }
  const Value whole = to_string(e, value);
  std::vector<Line> lines = lines_of(e, whole.bytes());
  // An empty text is one empty line. If a text ends with a line end, an empty line follows.
  if (lines.empty() || lines.back().next != lines.back().end) {
    lines.push_back({whole.text().size(), whole.text().size(), whole.text().size()});
  }
  Builder out(e.budget());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool empty = lines[i].begin == lines[i].end;
    if (i > 0) out.add("\n");
    if (i == 0 ? truth(first) : truth(blank) || !empty) out.add(by);
    out.add(whole.text(), lines[i].begin, lines[i].end);
  }
  return out.finish();
}

Value truncate(Evaluator& e, const Value& value, const Args& args) {
  const auto [size, kill, ending, leeway] = args.bind<4>("truncate", {"length", "killwords", "end", "leeway"});
  const std::int64_t most = size.is(Kind::undefined) ? 255 : need_whole("truncate", size);
  const Value end = ending.is(Kind::undefined) ? e.string("...") : need_string("truncate", ending);
  const std::int64_t more = given(leeway) ? need_whole("truncate", leeway) : 5;
  const std::int64_t kept = most - length(e.budget(), end);
  if (kept < 0 || more < 0) fail("truncate() to less than its ending");
  const Value whole = to_string(e, value);
  if (length(e.budget(), whole) <= most + more) return whole;
  const Text& text = whole.text();
  std::size_t stop = character_offset(text.bytes(), static_cast<std::size_t>(kept));
  if (!truth(kill)) {
    const std::size_t blank = text.bytes().substr(0, stop).rfind(' ');
    if (blank != std::string_view::npos) stop = blank;
  }
  Builder out(e.budget());
  out.add(text, 0, stop);
  out.add(end.text());
  return out.finish();
}

Value center(Evaluator& e, const Value& value, const Args& args) {
  const auto [width] = args.bind<1>("center", {"width"});
  const std::int64_t wide = width.is(Kind::undefined) ? 80 : need_whole("center", width);
  const Value text = to_string(e, value);
  const std::int64_t missing = wide - length(e.budget(), text);
  if (missing <= 0) return text;
  const std::int64_t left = missing / 2 + (missing & wide & 1);
  return padded(e, text.text(), left, missing - left, Text(" ", TextOrigin::from_template));
}

Value wordcount(Evaluator& e, const Value& value, const Args&) {
  const Value whole = to_string(e, value);
  e.budget().spend_on(4 * whole.text().size());
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < whole.text().size(); at += character_size(whole.bytes().substr(at))) {
    const std::uint32_t c = first_character(whole.bytes().substr(at));
    const bool word = c == '_' || is_alphabetic(c) || is_digit(c);
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::integer(words);
}

Value escape(Evaluator& e, const Value& value, const Args&) { return value.is_safe() ? value : escaped(e, value); }
Value forceescape(Evaluator& e, const Value& value, const Args&) { return escaped(e, value); }
Value safe(Evaluator& e, const Value& value, const Args&) { return to_string(e, value).as_safe(true); }

Value urlencode(Evaluator& e, const Value& value, const Args&) {
  if (value.is(Kind::dict) || value.is_list()) fail("urlencode of pairs is not supported", ErrorCode::unsupported);
  const Value whole = to_string(e, value);
  Builder out(e.budget());
  whole.text().for_each([&](std::string_view piece, TextOrigin origin) {
    for (const char& c : piece) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         std::string_view("_.-~/").find(c) != std::string_view::npos;
      if (plain) out.add(std::string_view(&c, 1), origin);
      else out.add(fmt::format("%{:02X}", static_cast<unsigned char>(c)), origin);
    }
  });
  return out.finish();
}

Value format(Evaluator& e, const Value& value, const Args& args) {
  if (!args.keyword.empty() && !args.positional.empty()) fail("format() takes values with names or without, not both");
  const Value text = to_string(e, value);
  if (args.keyword.empty()) return percent_format(e, text.text(), make_tuple(e.budget(), args.positional));
  Members members;
  for (const auto& [name, given] : args.keyword) members.emplace_back(e.string(name), given);
  return percent_format(e, text.text(), make_dict(e.budget(), std::move(members)));
}

Value tojson(Evaluator& e, const Value& value, const Args& args) {
  const auto [ascii, indent, separators, sort] =
      args.bind<4>("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = truth(ascii);
  style.sort_keys = truth(sort);
  if (given(indent)) {
    style.indented = true;
    style.item_separator = ",";
    if (indent.is(Kind::string)) {
      style.indent = std::string(indent.bytes());
    } else {
      const std::int64_t blanks = need_whole("tojson", indent);
      if (blanks > 1000) fail("tojson() with an indent over 1000", ErrorCode::over_budget);
      style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(0, blanks)), ' ');
    }
  }
  if (given(separators)) {
    const Values two = iterate(e.budget(), separators);
    if (two.size() != 2) fail("tojson() takes two separators");
    style.item_separator = std::string(need_string("tojson", two[0]).bytes());
    style.key_separator = std::string(need_string("tojson", two[1]).bytes());
  }
  Builder out(e.budget());
  append_json(e, out, value, style);
  return out.finish();
}

constexpr Filter kTextFilters[] = {
    {"string", string}, {"trim", trim}, {"upper", upper}, {"lower", lower}, {"capitalize", capitalize}, {"title", title},
    {"replace", replace}, {"indent", indent}, {"truncate", truncate}, {"center", center}, {"wordcount", wordcount},
    {"escape", escape}, {"e", escape}, {"forceescape", forceescape}, {"safe", safe}, {"urlencode", urlencode},
    {"format", format}, {"tojson", tojson},
};

}  // namespace

std::span<const Filter> text_filters() noexcept { return kTextFilters; }

}  // namespace tessera::jinja
