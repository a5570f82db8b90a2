#include "hub/quantised/layer_patterns.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "text/pcre2.hpp"

namespace tessera::detail::hub {

namespace {

constexpr std::string_view kTargets = "config.json: quantization_config.config_groups.targets";
constexpr std::size_t kLongestTarget = 4096;  // bytes
constexpr std::uint32_t kMostTargetSteps = 100'000;

}  // namespace

struct LayerPatterns::Code {
  Pcre2Code code;
  std::string text;
};

Result<LayerPatterns> LayerPatterns::read(const Json* targets) {
  LayerPatterns patterns;
  if (targets == nullptr || targets->elements() == nullptr) return patterns;
  patterns.names_class_ = false;
  for (const Json& target : *targets->elements()) {
    if (target.string() == nullptr) return error_at(ErrorCode::corrupt_file, kTargets, "expected a list of strings");
    const std::string& text = *target.string();
    if (text == "Linear") {
      patterns.names_class_ = true;
    } else if (!text.starts_with("re:")) {
      // Names of modules have dots or are in lower case; classes begin with a capital.
      const bool is_class = !text.empty() && text[0] >= 'A' && text[0] <= 'Z' && text.find('.') == std::string::npos;
      if (is_class) return error_at(ErrorCode::unsupported, kTargets, "the class {}; tessera knows Linear, names of modules and \"re:\" patterns", printable(text));
      patterns.names_.push_back(text);
    } else {
      int error = 0;
      const std::string whole = fmt::format("\\A(?:{})", std::string_view(text).substr(3));
      if (text.size() > kLongestTarget) return error_at(ErrorCode::unsupported, kTargets, "a pattern of {} bytes; at most {} are read", text.size(), kLongestTarget);
      Pcre2Code code = compile_pcre2(whole, PCRE2_UTF | PCRE2_DOTALL, nullptr, error);
      if (code == nullptr && is_pcre2_memory_error(error)) return out_of_memory_error();
      if (code == nullptr) return error_at(ErrorCode::unsupported, kTargets, "{} is no regular expression: {}", printable(text), pcre2_message(error));
      patterns.codes_.push_back(std::make_shared<const Code>(Code{std::move(code), text}));
    }
  }
  return patterns;
}

LayerPatterns LayerPatterns::of_layer(std::string name) {
  LayerPatterns patterns;
  patterns.names_class_ = false;
  patterns.names_.push_back(std::move(name));
  return patterns;
}

Result<Naming> LayerPatterns::naming(std::string_view module) const {
  if (std::ranges::find(names_, module) != names_.end()) return Naming::by_name;
  const Pcre2MatchData data(codes_.empty() ? nullptr : pcre2_match_data_create(1, nullptr));
  const Pcre2MatchContext context(codes_.empty() ? nullptr : pcre2_match_context_create(nullptr));
  if (!codes_.empty() && (data == nullptr || context == nullptr)) return out_of_memory_error();
  if (context != nullptr) (void)pcre2_set_match_limit(context.get(), kMostTargetSteps);
  for (const auto& row : codes_) {
    const int found = pcre2_match(row->code.get(), reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0, data.get(), context.get());
    if (found >= 0) return Naming::by_name;
    if (found == PCRE2_ERROR_NOMATCH) continue;
    if (is_pcre2_memory_error(found) || found == PCRE2_ERROR_HEAPLIMIT) return out_of_memory_error();
    return error_at(ErrorCode::unsupported, kTargets, "{} cannot be matched with {}: {}", printable(row->text), printable(module), pcre2_message(found));
  }
  return names_class_ ? Naming::by_class : Naming::not_at_all;
}

}  // namespace tessera::detail::hub
