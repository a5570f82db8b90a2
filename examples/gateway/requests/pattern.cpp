#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include <fmt/format.h>

#include "failure.hpp"
#include "requests/pattern.hpp"

namespace gateway {

namespace {
constexpr std::uint32_t kMostSteps = 200'000;
}

Pattern::Pattern(const std::string& expression) {
  int error = 0;
  PCRE2_SIZE at = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), PCRE2_CASELESS | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &at, nullptr),
              &pcre2_code_free);
  if (code_ != nullptr) return;
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  throw Failure(tessera::ErrorCode::invalid_argument,
                fmt::format("the regular expression \"{}\" is wrong at character {}: {}", expression, at, reinterpret_cast<const char*>(text.data())));
}

std::optional<bool> Pattern::is_in(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  if (data == nullptr || context == nullptr) return std::nullopt;
  pcre2_set_match_limit(context.get(), kMostSteps);
  const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, data.get(), context.get());
  if (found >= 0) return true;
  return found == PCRE2_ERROR_NOMATCH ? std::optional(false) : std::nullopt;
}

}  // namespace gateway
