// /set: the sampler and the length of answers, during a conversation.
#include <array>
#include <charconv>
#include <functional>

#include <fmt/format.h>

#include "chat/chat.hpp"
#include "failure.hpp"
#include "sampler.hpp"

using tessera::ErrorCode;

namespace {

template <class T>
T parsed(std::string_view name, const std::string& text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  throw Failure(ErrorCode::invalid_argument, fmt::format("/set {}: \"{}\" is not a number that fits", name, text));
}

std::string_view name_of(WhenFull when_full) {
  return when_full == WhenFull::drop ? "drop" : when_full == WhenFull::compact ? "compact" : "stop";
}

WhenFull when_full_of(const std::string& text) {
  for (const WhenFull each : {WhenFull::drop, WhenFull::compact, WhenFull::stop}) {
    if (text == name_of(each)) return each;
  }
  throw Failure(ErrorCode::invalid_argument, fmt::format("/set full: \"{}\" is not one of drop, compact, stop", text));
}

struct Setting {
  std::string_view name, meaning;
  std::function<std::string(const Options&)> shown;
  std::function<void(Options&, const std::string&)> set;
};

template <class T>
Setting number_setting(std::string_view name, std::string_view meaning, T Options::*field) {
  return {name, meaning, [field](const Options& o) { return fmt::format("{}", o.*field); },
          [name, field](Options& o, const std::string& text) { o.*field = parsed<T>(name, text); }};
}

std::array<Setting, 7> settings() {
  return {number_setting("temperature", "0 takes the likeliest token", &Options::temperature),
          number_setting("top-k", "the likeliest N tokens; 0: all", &Options::top_k),
          number_setting("top-p", "the likeliest tokens that have this share", &Options::top_p),
          number_setting("min-p", "tokens with at least this share of the likeliest token's chance", &Options::min_p),
          number_setting("repeat-penalty", "above 1: repeated tokens are less likely", &Options::repeat_penalty),
          Setting{"length", "tokens of an answer at most",
                  [](const Options& o) {
                    return o.max_tokens ? fmt::format("{}", *o.max_tokens) : "as many as fit, up to 1024";
                  },
                  [](Options& o, const std::string& text) {
                    const auto length = parsed<std::size_t>("length", text);
                    if (length == 0)
                      throw Failure(ErrorCode::invalid_argument, "/set length 0: an answer has a token at least");
                    o.max_tokens = length;
                  }},
          Setting{"full", "a full context: drop, compact (a summary) or stop",
                  [](const Options& o) { return std::string(name_of(o.when_full)); },
                  [](Options& o, const std::string& text) { o.when_full = when_full_of(text); }}};
}

}  // namespace

void Chat::set(const std::string& argument) {
  const std::size_t space = std::min(argument.find(' '), argument.size());
  const std::string name = argument.substr(0, space);
  const std::size_t text = std::min(argument.find_first_not_of(' ', space), argument.size());
  const auto list = settings();
  if (name.empty()) {
    for (const Setting& each : list)
      fmt::print(stderr, "{:<15} {:<10} {}\n", each.name, each.shown(options_), each.meaning);
    fmt::print(stderr, "{:<15} {:<10} {}\n", "seed", seed_,
               "the same seed and the same messages give the same answers");
    return;
  }
  if (name == "seed") {
    seed_ = parsed<std::uint64_t>(name, argument.substr(text));
    return;
  }
  for (const Setting& each : list) {
    if (each.name != name) continue;
    if (text == argument.size()) throw Failure(ErrorCode::invalid_argument, fmt::format("/set {} needs a value", name));
    Options changed = options_;
    each.set(changed, argument.substr(text));
    if (name == "temperature") changed.greedy = false;
    try {
      (void)make_sampler(changed, seed_);
    } catch (const UsageError& error) {
      throw Failure(ErrorCode::invalid_argument, error.what());
    }
    options_ = std::move(changed);
    return;
  }
  throw Failure(ErrorCode::invalid_argument, fmt::format("there is no setting \"{}\"; /set alone lists them", name));
}
