// Python's str() and repr() for the evaluator's values.
#include <charconv>
#include <cmath>

#include "chat/jinja/evaluator.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"
#include "json/python_float.hpp"

namespace tessera::jinja {
namespace {

void append_quoted(Builder& out, const Text& text) {
  const std::string_view bytes = text.bytes();
  const char quote = bytes.find('\'') != bytes.npos && bytes.find('"') == bytes.npos ? '"' : '\'';
  out.add(std::string_view(&quote, 1));
  text.for_each([&](std::string_view piece, TextOrigin origin) {
    std::size_t plain = 0;  // beginning of the bytes, not printed yet, that need no escape
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t size = character_size(piece.substr(at));
      const std::uint32_t c = first_character(piece.substr(at));
      std::string escape;
      if (c == '\\' || c == static_cast<std::uint32_t>(quote)) {
        escape = {'\\', static_cast<char>(c)};
      } else if (c == '\n' || c == '\r' || c == '\t') {
        escape = c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
      } else if (!is_printable(c)) {
        escape = c < 0x100 ? fmt::format("\\x{:02x}", c) : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                                                                        : fmt::format("\\U{:08x}", c);
      }
      if (!escape.empty()) {
        out.add(piece.substr(plain, at - plain), origin);
        out.add(escape, origin);
        plain = at + size;
      }
      at += size;
    }
    out.add(piece.substr(plain), origin);
  });
  out.add(std::string_view(&quote, 1));
}

void append_items(Evaluator& evaluator, Builder& out, const Values& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(", ");
    append_repr(evaluator, out, items[i]);
  }
}

}  // namespace

void append_string(Evaluator& evaluator, Builder& out, const Value& value) {
  if (value.is(Kind::undefined)) return;
  if (value.is(Kind::string)) return out.add(value.text());
  append_repr(evaluator, out, value);
}

Value to_string(Evaluator& evaluator, const Value& value) {
  if (value.is(Kind::string)) return value;
  Builder out(evaluator.budget());
  append_string(evaluator, out, value);
  return out.finish();
}

void append_repr(Evaluator& evaluator, Builder& out, const Value& value) {
  evaluator.budget().spend(1);
  evaluator.check_stack();
  switch (value.kind()) {
    case Kind::undefined: return out.add("Undefined");
    case Kind::none: return out.add("None");
    case Kind::boolean: return out.add(value.whole() != 0 ? "True" : "False");
    case Kind::integer: return out.add(fmt::format("{}", value.whole()), value.origin());
    case Kind::big_integer: return out.add(value.text());
    case Kind::floating: return out.add(detail::python_float(value.number()), value.origin());
    case Kind::string: return append_quoted(out, value.text());
    case Kind::list:
      out.add("[");
      append_items(evaluator, out, value.items());
      return out.add("]");
    case Kind::tuple:
      out.add("(");
      append_items(evaluator, out, value.items());
      return out.add(value.items().size() == 1 ? ",)" : ")");
    case Kind::dict_view:
      out.add(fmt::format("{}([", value.as<DictView>().name));
      append_items(evaluator, out, value.items());
      return out.add("])");
    case Kind::dict: {
      out.add("{");
      bool first = true;
      for (const auto& [key, item] : value.members()) {
        if (!first) out.add(", ");
        first = false;
        append_repr(evaluator, out, key);
        out.add(": ");
        append_repr(evaluator, out, item);
      }
      return out.add("}");
    }
    case Kind::range: {
      const auto& range = value.as<Range>();
      const std::int64_t stop = range.start + range.step * range.size;
      return out.add(range.step == 1 ? fmt::format("range({}, {})", range.start, stop)
                                     : fmt::format("range({}, {}, {})", range.start, stop, range.step));
    }
    case Kind::name_space: {
      out.add("<Namespace {");
      bool first = true;
      for (const auto& [name, item] : value.pointed<Namespace>().attributes) {
        if (!first) out.add(", ");
        first = false;
        out.add(fmt::format("'{}': ", name));
        append_repr(evaluator, out, item);
      }
      return out.add("}>");
    }
    default: fail(fmt::format("a {} has no text to print", type_name(value)), ErrorCode::unsupported);
  }
}

Value escaped(Evaluator& evaluator, const Value& value) {
  const Value text = to_string(evaluator, value);
  Builder out(evaluator.budget());
  text.text().for_each([&](std::string_view piece, TextOrigin origin) {
    for (const char& c : piece) {
      switch (c) {
        case '&': out.add("&amp;", origin); break;
        case '<': out.add("&lt;", origin); break;
        case '>': out.add("&gt;", origin); break;
        case '\'': out.add("&#39;", origin); break;
        case '"': out.add("&#34;", origin); break;
        default: out.add(std::string_view(&c, 1), origin);
      }
    }
  });
  return out.finish().as_safe(true);
}

}  // namespace tessera::jinja
