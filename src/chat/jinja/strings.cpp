#include "chat/jinja/strings.hpp"

#include "chat/jinja/unicode/unicode.hpp"
#include "core/error.hpp"

namespace tessera::jinja {

Extent stripped(std::string_view text, const std::string_view* characters, Ends ends) {
  const bool left = ends != Ends::right, right = ends != Ends::left;
  const auto strips = [&](std::string_view character) {
    if (characters == nullptr) return is_space(first_character(character));
    for (std::size_t at = 0; at < characters->size();) {
      const std::size_t size = character_size(characters->substr(at));
      if (characters->substr(at, size) == character) return true;
      at += size;
    }
    return false;
  };
  Extent out{0, text.size()};
  while (left && out.begin < out.end) {
    const std::size_t size = character_size(text.substr(out.begin));
    if (!strips(text.substr(out.begin, size))) break;
    out.begin += size;
  }
  while (right && out.begin < out.end) {
    std::size_t start = out.end - 1;
    while (start > out.begin && out.end - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (character_size(text.substr(start)) != out.end - start) start = out.end - 1;
    if (!strips(text.substr(start, out.end - start))) break;
    out.end = start;
  }
  return out;
}

Value part(Evaluator& evaluator, const Text& text, std::size_t begin, std::size_t end) {
  evaluator.budget().check(end - begin);
  return make_string(evaluator.budget(), text.slice(begin, end));
}

Value replaced(Evaluator& evaluator, const Text& text, const Text& old, const Text& fresh, std::int64_t times) {
  const std::string_view bytes = text.bytes();
  evaluator.budget().spend_on(bytes.size());
  Builder out(evaluator.budget());
  std::size_t at = 0;
  if (old.empty()) {  // Python replaces the empty text before each character and at the end
    for (; times != 0; --times) {
      out.add(fresh);
      if (at == bytes.size()) break;
      const std::size_t next = at + character_size(bytes.substr(at));
      out.add(text, at, next);
      at = next;
    }
  } else {
    for (; times != 0; --times) {
      const std::size_t found = bytes.find(old.bytes(), at);
      if (found == bytes.npos) break;
      out.add(text, at, found);
      out.add(fresh);
      at = found + old.size();
    }
  }
  out.add(text, at, bytes.size());
  return out.finish();
}

namespace {

// Returns the text with each character in the case that `choose(character)` returns.
template <class Choose>
Value recased(Evaluator& evaluator, const Text& text, Choose&& choose) {
  evaluator.budget().check(3 * text.size());
  evaluator.budget().spend_on(4 * text.size());
  Text out;
  std::size_t at = 0;
  text.for_each([&](std::string_view piece, TextOrigin origin) {
    for (const std::size_t end = at + piece.size(); at < end; at += character_size(text.bytes().substr(at))) {
      append_in_case(out, text.bytes(), at, choose(first_character(text.bytes().substr(at))), origin);
    }
  });
  return make_string(evaluator.budget(), std::move(out));
}

}  // namespace

Value titled(Evaluator& evaluator, const Text& text) {
  bool in_word = false;
  return recased(evaluator, text, [&](std::uint32_t c) {
    const bool inside = in_word;
    in_word = is_upper(c) || is_lower(c) || (c >= 0x1C5 && c <= 0x1F2 && is_alphabetic(c) && (c <= 0x1CB || c == 0x1F2));
    return inside ? Case::lower : Case::title;
  });
}

Value capitalized(Evaluator& evaluator, const Text& text) {
  bool first = true;
  return recased(evaluator, text, [&](std::uint32_t) { return std::exchange(first, false) ? Case::title : Case::lower; });
}

Value in_case(Evaluator& evaluator, const Text& text, Case to) {
  evaluator.budget().check(3 * text.size());
  evaluator.budget().spend_on(4 * text.size());
  return make_string(evaluator.budget(), to_case(text, to));
}

Value padded(Evaluator& evaluator, const Text& text, std::int64_t left, std::int64_t right, const Text& with) {
  const auto room = [&](std::int64_t count) {
    if (count > 0) evaluator.budget().check(static_cast<std::uint64_t>(count) * with.size());
  };
  room(left);
  room(right);
  Builder out(evaluator.budget());
  for (std::int64_t i = 0; i < left; ++i) out.add(with);
  out.add(text);
  for (std::int64_t i = 0; i < right; ++i) out.add(with);
  return out.finish();
}

std::vector<Line> lines_of(Evaluator& evaluator, std::string_view text) {
  evaluator.budget().spend_on(8 * text.size());
  std::vector<Line> lines;
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    const std::size_t size = character_size(text.substr(at));
    const std::uint32_t c = first_character(text.substr(at));
    const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    std::size_t next = at + size;
    if (ends) {
      if (c == '\r' && next < text.size() && text[next] == '\n') ++next;
      evaluator.budget().check((lines.size() + 1) * sizeof(Line) * 2);
      lines.push_back({begin, at, next});
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) lines.push_back({begin, text.size(), text.size()});
  return lines;
}

const Value& need_string(std::string_view function, const Value& value) {
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (!value.is(Kind::string)) fail(fmt::format("{}() takes a string, not a {}", function, type_name(value)));
  return value;
}

std::int64_t need_whole(std::string_view function, const Value& value) {
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (!value.is_whole()) fail(fmt::format("{}() takes an integer, not a {}", function, type_name(value)));
  return value.whole();
}

}  // namespace tessera::jinja
