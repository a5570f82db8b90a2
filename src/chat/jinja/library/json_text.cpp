// The filter tojson, which prints JSON as Python's json.dumps does.
#include <algorithm>

#include "chat/jinja/evaluator.hpp"
#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"
#include "json/spelling.hpp"

namespace tessera::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Evaluator& evaluator, Builder& out, const JsonStyle& style) : e_(evaluator), out_(out), style_(style) {}

  void value(const Value& v) {
    e_.budget().spend(1);
    e_.check_stack();
    switch (v.kind()) {
      case Kind::none: return out_.add("null");
      case Kind::boolean: return out_.add(v.whole() != 0 ? "true" : "false");
      case Kind::integer: return out_.add(fmt::format("{}", v.whole()), v.origin());
      case Kind::big_integer: return out_.add(v.text());
      case Kind::floating: return out_.add(detail::json_number(v.number()), v.origin());
      case Kind::string: return string(v.text());
      case Kind::list:
      case Kind::tuple: return array(v.items());
      case Kind::dict: return object(v.members());
      default: fail(fmt::format("a {} is no JSON", type_name(v)));
    }
  }

 private:
  void line_end() {
    if (!style_.indented) return;
    out_.add("\n");
    for (std::size_t i = 0; i < level_; ++i) out_.add(style_.indent);
  }
  void separator() { out_.add(style_.item_separator); }

  void array(const Values& items) {
    if (items.empty()) return out_.add("[]");
    out_.add("[");
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) separator();
      line_end();
      value(items[i]);
    }
    --level_;
    line_end();
    out_.add("]");
  }

  void object(const Members& members) {
    if (members.empty()) return out_.add("{}");
    std::vector<const std::pair<Value, Value>*> order;
    e_.budget().check(members.size() * sizeof(void*));
    for (const auto& member : members) order.push_back(&member);
    if (style_.sort_keys) {
      std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
        return compare(e_.budget(), a->first, b->first) < 0;
      });
    }
    out_.add("{");
    ++level_;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0) separator();
      line_end();
      key(order[i]->first);
      out_.add(style_.key_separator);
      value(order[i]->second);
    }
    --level_;
    line_end();
    out_.add("}");
  }

  void key(const Value& v) {
    if (v.is(Kind::string)) return string(v.text());
    if (v.is(Kind::tuple) || v.is(Kind::undefined)) fail(fmt::format("a {} is no key of JSON", type_name(v)));
    out_.add("\"");
    value(v);
    out_.add("\"");
  }

  void string(const Text& text) {
    const auto characters = style_.ensure_ascii ? detail::JsonCharacters::ascii : detail::JsonCharacters::any;
    out_.add("\"");
    text.for_each([&](std::string_view piece, TextOrigin origin) {
      std::size_t plain = 0;  // beginning of the bytes, not printed yet, that need no escape
      for (std::size_t at = 0; at < piece.size();) {
        const std::size_t size = character_size(piece.substr(at));
        const std::string escape = detail::json_escape(first_character(piece.substr(at)), characters);
        if (!escape.empty()) {
          out_.add(piece.substr(plain, at - plain), origin);
          out_.add(escape, origin);
          plain = at + size;
        }
        at += size;
      }
      out_.add(piece.substr(plain), origin);
    });
    out_.add("\"");
  }

  Evaluator& e_;
  Builder& out_;
  const JsonStyle& style_;
  std::size_t level_ = 0;
};

}  // namespace

void append_json(Evaluator& evaluator, Builder& out, const Value& value, const JsonStyle& style) {
  JsonWriter(evaluator, out, style).value(value);
}

}  // namespace tessera::jinja
