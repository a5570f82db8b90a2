#include "cache_choice.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "command_line.hpp"
#include "kv_options.hpp"

namespace tessera::tool {
namespace {

[[noreturn]] void fail(std::string_view text, const std::string& why) {
  throw CLI::ValidationError("--caches", fmt::format("\"{}\": {}", text, why));
}

// Removes the text up to and including the next ':' from `text`, and returns the removed text without the ':'.
std::string_view next_part(std::string_view& text, bool& is_last) {
  const std::size_t colon = text.find(':');
  const std::string_view part = text.substr(0, colon);
  is_last = colon == std::string_view::npos;
  text.remove_prefix(is_last ? text.size() : colon + 1);
  return part;
}

void read_length(CacheChoice& cache, std::string_view text) {
  if (text.ends_with('%')) {
    double percent = 0;
    const std::string_view digits = text.substr(0, text.size() - 1);
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
    if (error != std::errc() || stop != digits.data() + digits.size() || !(percent > 0 && percent <= 100)) {
      fail(cache.name, "a share of the tokens is above 0 % and at most 100 %");
    }
    cache.share = percent / 100;
    return;
  }
  const std::optional<std::uint64_t> tokens = parse_tokens(text);
  if (!tokens || *tokens < kLeastTokenBudget || *tokens >= kNoTokenBudget) {
    fail(cache.name, fmt::format("a budget is {} tokens or more, or a share as 25%", kLeastTokenBudget));
  }
  cache.tokens = static_cast<std::uint32_t>(*tokens);
}

}  // namespace

TokenBudget CacheChoice::budget(std::size_t length) const {
  const auto part = static_cast<std::uint32_t>(share * static_cast<double>(length));
  if (tokens == 0 && share == 1.0) return {.tokens = kNoTokenBudget, .choice = choice};
  return {.tokens = tokens != 0 ? tokens : std::max(part, kLeastTokenBudget), .choice = choice};
}

CacheChoice parse_cache(std::string_view text) {
  CacheChoice cache{.name = std::string(text)};
  bool is_last = false;
  cache.dtype = kv_type_named("--caches", std::string(next_part(text, is_last)));
  if (is_last) return cache;
  read_length(cache, next_part(text, is_last));
  if (is_last) return cache;
  if (text == "h2o") cache.choice = TokenChoice::h2o;
  else if (text == "snapkv") cache.choice = TokenChoice::snapkv;
  else if (text != "window") fail(cache.name, "the tokens to keep are chosen by window, h2o or snapkv");
  return cache;
}

CLI::Option* add_caches(CLI::App& app, std::vector<CacheChoice>& caches, const std::string& description) {
  return app
      .add_option_function<std::string>(
          "--caches",
          [&caches](const std::string& list) {
            caches.clear();
            for (const std::string& text : CLI::detail::split(list, ',')) caches.push_back(parse_cache(text));
          },
          description)
      ->type_name(kCachesType);
}

}  // namespace tessera::tool
