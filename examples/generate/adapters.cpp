#include "adapters.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "failure.hpp"
#include "model.hpp"
#include "options.hpp"
#include "output/terminal.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"

using tessera::Adapter;
using tessera::AdapterUse;

namespace {

// Returns the number in a text; infinity if the number is too large or too near to 0 for a float; nullopt if the text is no number.
std::optional<float> scale_in(std::string_view text) {
  float scale = 0.0f;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, scale);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc() ? scale : std::numeric_limits<float>::infinity();
}

bool exists(std::string_view path) {
  std::error_code ignored;
  return !path.empty() && std::filesystem::exists(tessera::tool::path_of(path), ignored);
}

}  // namespace

LoraOption parse_lora(const std::string& text) {
  if (text.empty()) throw UsageError("--lora needs a file");
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return {.path = text};
  const std::string path = text.substr(0, colon), tail = text.substr(colon + 1);
  const auto scale = scale_in(tail);
  if (!scale) {
    // "x.gguf:half" is a wrong scale if there is a file x.gguf, but no file with the whole name.
    if (!exists(text) && exists(path)) throw UsageError(fmt::format("--lora: \"{}\" is not a number; give FILE:SCALE, such as {}:0.5", tail, path));
    return {.path = text};
  }
  if (!std::isfinite(*scale)) throw UsageError(fmt::format("--lora: a scale of {}; give a number such as 0.5", tail));
  return {.path = path, .scale = *scale};
}

void check_lora_files(const Options& options) {
  for (const LoraOption& lora : options.lora) {
    if (!exists(lora.path)) throw Failure(tessera::ErrorCode::not_found, fmt::format("{}: there is no such file: give --lora a GGUF adapter or a folder of PEFT", lora.path));
  }
}

std::vector<AdapterUse> load_adapters(const Options& options, const tessera::Engine& engine, const std::stop_token& stop) {
  std::vector<AdapterUse> uses;
  for (const LoraOption& lora : options.lora) {
    AdapterUse use{.adapter = value(engine.adapter(tessera::tool::path_of(lora.path), {.stop = stop})), .scale = lora.scale};
    for (const AdapterUse& other : uses) {
      if (other.adapter.content() != use.adapter.content()) continue;
      throw UsageError(fmt::format("--lora {}: the adapter is given twice; give it once, with the sum of the scales", lora.path));
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

std::string adapter_name(const Adapter& adapter) { return adapter.name().empty() ? "adapter" : tessera::tool::shown(adapter.name()); }

std::string adapter_words(const Adapter& adapter) {
  return fmt::format("rank {}, {} {}, {}", adapter.rank(), adapter.matrices(), adapter.matrices() == 1 ? "matrix" : "matrices",
                     human_bytes(adapter.bytes()));
}

bool same_adapters(std::span<const AdapterUse> one, std::span<const AdapterUse> other) {
  const auto has_all = [](std::span<const AdapterUse> list, std::span<const AdapterUse> of) {
    return std::ranges::all_of(of, [&](const AdapterUse& use) {
      return use.scale == 0.0f || std::ranges::any_of(list, [&](const AdapterUse& each) {
               return each.adapter.content() == use.adapter.content() && each.scale == use.scale;
             });
    });
  };
  return has_all(one, other) && has_all(other, one);
}

void tell_of_waiting(const tessera::Session& session) {
  for (const AdapterUse& use : value(session.adapters())) {
    if (use.from) continue;
    const auto text = session.engine().tokenizer().decode(use.adapter.invocation(), {.control = tessera::ControlText::show});
    complain(fmt::format("adapter {} changes nothing: the prompt does not have its invocation{}", adapter_name(use.adapter),
                         text ? fmt::format(", \"{}\"", tessera::tool::shown(*text)) : ""));
  }
}
