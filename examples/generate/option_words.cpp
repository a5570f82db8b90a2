#include "option_words.hpp"

#include <string_view>

namespace {

struct Advice {
  std::string_view of_the_library;  // the beginning of the advice, which goes to the end of the error
  std::string_view of_options;
};

constexpr Advice kAdvice[] = {
    {": load it by Engine::adapter()", ": give its file with --lora"},
    {": restore it in that type, and convert() it", ": give the --kv-dtype with which it was saved"},
    {": restore it so, and convert() it", ": give the --kv-dtype and --kv-wide with which it was saved"},
    {". It goes on in an engine with the numerics that it was saved with", ": give the --numerics with which it was saved"},
    {"; truncate it, or make the session with a larger context", "; give a larger --ctx, a smaller -n, or --keep to go on without the middle"},
};

// Words to replace within an error, whose other words stay.
constexpr Advice kWords[] = {{"give a context of ", "give a --ctx of "}};

}  // namespace

std::string in_options(std::string text) {
  for (const Advice& advice : kAdvice) {
    if (const std::size_t at = text.find(advice.of_the_library); at != text.npos) return text.replace(at, text.npos, advice.of_options);
  }
  for (const Advice& words : kWords) {
    if (const std::size_t at = text.find(words.of_the_library); at != text.npos) return text.replace(at, words.of_the_library.size(), words.of_options);
  }
  return text;
}
