// /lora: the adapters of --lora, during a conversation.
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "adapters.hpp"
#include "chat/chat.hpp"
#include "failure.hpp"
#include "terminal_text.hpp"

using tessera::AdapterUse;
using tessera::ErrorCode;

namespace {

constexpr const char* kUsage = "/lora NAME SCALE, such as /lora pirate 0.5; /lora alone lists the names";

float scale_of(std::string_view text) {
  float scale = 0.0f;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, scale);
  if (error == std::errc() && stop == end && std::isfinite(scale)) return scale;
  throw Failure(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a number: {}", text, kUsage));
}

// Returns the adapter with this name, or with this number of the list (from 1).
std::size_t adapter_named(std::span<const AdapterUse> adapters, const std::string& name) {
  std::size_t found = adapters.size(), count = 0;
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    if (fmt::format("{}", i + 1) == name) return i;
    if (adapter_name(adapters[i].adapter) == name) found = i, ++count;
  }
  if (count == 1) return found;
  throw Failure(ErrorCode::invalid_argument, count == 0 ? fmt::format("there is no adapter \"{}\"; /lora lists them", name)
                                                        : fmt::format("{} adapters have the name \"{}\": give a number of /lora", count, name));
}

}  // namespace

void Chat::list_adapters() const {
  if (adapters_.empty()) fmt::print(stderr, "none: the program's option --lora FILE loads one\n");
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const AdapterUse& use = adapters_[i];
    fmt::print(stderr, "{:>2}  {:<20} scale {:<6} {}\n", i + 1, adapter_name(use.adapter), use.scale, adapter_words(use.adapter));
  }
}

void Chat::lora(const std::string& argument) {
  if (argument.empty()) return list_adapters();
  const std::size_t space = argument.find_last_of(" \t");
  if (space == argument.npos) throw Failure(ErrorCode::invalid_argument, kUsage);
  const std::string name = argument.substr(0, argument.find_last_not_of(" \t", space) + 1);
  std::vector<AdapterUse> changed = adapters_;
  const std::size_t which = adapter_named(changed, name);
  changed[which].scale = scale_of(argument.substr(space + 1));
  const std::size_t before = conversation_.session().position();
  if (const auto done = conversation_.use_adapters(changed); !done) throw Failure(done.error());
  adapters_ = std::move(changed);
  const std::size_t after = conversation_.session().position();
  fmt::print(stderr, "[{}: scale {}; {} of {} tokens are computed again for the next answer]\n", adapter_name(adapters_[which].adapter),
             adapters_[which].scale, before - after, before);
}
