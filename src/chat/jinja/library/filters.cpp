#include "chat/jinja/library/filters.hpp"

#include <array>
#include <charconv>

#include "chat/jinja/names.hpp"
#include "core/error.hpp"

namespace tessera::jinja {
namespace {

const Filter* find(std::string_view name) noexcept {
  for (const auto table : {text_filters(), value_filters(), sequence_filters(), choice_filters()}) {
    for (const Filter& filter : table) {
      if (filter.name == name) return &filter;
    }
  }
  return nullptr;
}

}  // namespace

bool is_filter(std::string_view name) noexcept { return find(name) != nullptr; }

Value Evaluator::apply_filter(std::string_view name, const Value& value, const Args& args) {
  const Filter* filter = find(name);
  if (filter == nullptr) fail(fmt::format("there is no filter '{}'", name), ErrorCode::unsupported);
  return filter->run(*this, value, args);
}

Value attribute_path(Evaluator& evaluator, Value item, const Value& path) {
  if (path.is_whole()) return evaluator.item(item, path);
  if (!path.is(Kind::string)) fail("an attribute is named by a string or a number");
  std::string_view rest = path.bytes();
  for (;;) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = !part.empty() && part[0] != '-' && error == std::errc() && end == part.data() + part.size();
    item = evaluator.item(item, number ? Value::integer(index) : evaluator.string(part));
    if (dot == rest.npos) return item;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace tessera::jinja
