#include "text/pipeline/regex.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "text/newer_characters.hpp"
#include "text/pcre2.hpp"
#include "text/pipeline/oniguruma.hpp"

namespace tessera::detail {
namespace {

constexpr std::uint32_t kFreeSteps = 2048;  // steps of one search that cost no fuel
constexpr std::uint32_t kHeapKib = 32 << 10;

constexpr Regex::Match kNone{std::string_view::npos, std::string_view::npos};

// Returns the fuel of a Finder, in PCRE2's steps: enough for every known pattern on texts of any length, and some seconds at most.
std::uint64_t fuel_for(std::size_t text_bytes) noexcept { return 50'000'000 + 64 * std::uint64_t{text_bytes}; }

// Returns the limit for the time that all searches in one text may take together. The limit of PCRE2's steps is not enough: a single step
// may pass any number of characters. No known pattern comes near this time.
std::chrono::nanoseconds patience_for(std::size_t text_bytes) noexcept {
  return std::chrono::seconds(5) + std::chrono::microseconds(std::uint64_t{text_bytes});
}

}  // namespace

struct Regex::Code {
  Pcre2Code code;
  bool names_newer = false;  // true: the pattern itself has newer characters, and texts are matched as they are
};

Regex::Regex() noexcept = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::literal(std::string_view text) {
  Regex made;
  made.text_ = text;
  return made;
}

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kLongestPattern) {
    return make_error(ErrorCode::unsupported, "a pattern of {} bytes; at most {} are read", pattern.size(), kLongestPattern);
  }
  if (pattern.empty()) return literal("");
  TESSERA_TRY(const std::string translated, pcre2_pattern(pattern));
  const Pcre2CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context) return out_of_memory_error();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 100);
  int error = 0;
  Regex made;
  made.text_ = pattern;
  made.code_ = std::make_unique<Code>();
  std::string older;
  made.code_->names_newer = with_older_characters(pattern, older) != pattern;
  constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  made.code_->code = compile_pcre2(translated, kOptions, context.get(), error);
  if (!made.code_->code) {
    if (is_pcre2_memory_error(error)) return out_of_memory_error();
    return make_error(ErrorCode::unsupported, "the pattern \"{}\" cannot be compiled: {}", printable(pattern, 120), pcre2_message(error));
  }
  return made;
}

std::uint64_t Regex::memory_bytes() const noexcept {
  return text_.capacity() + (code_ ? pcre2_memory_bytes(code_->code.get()) : 0);
}

struct Regex::Finder::State {
  const Regex* regex = nullptr;
  Pcre2MatchData data;
  Pcre2MatchContext context;
  std::chrono::nanoseconds took{};  // time that searches took
  std::uint64_t used = 0;  // fuel that searches have used
  std::string_view text;     // as PCRE2 sees it
  std::string older;         // holds `text` if it has newer characters
  std::size_t from = 0;                            // beginning of the next search
  std::size_t last_end = std::string_view::npos;  // end of the last match
};

Regex::Finder::Finder() noexcept = default;
Regex::Finder::Finder(Finder&&) noexcept = default;
Regex::Finder& Regex::Finder::operator=(Finder&&) noexcept = default;
Regex::Finder::~Finder() = default;

Result<Regex::Finder> Regex::Finder::create(const Regex& regex) {
  Finder made;
  made.state_ = std::make_unique<State>();
  made.state_->regex = &regex;
  if (!regex.code_) return made;
  made.state_->data.reset(pcre2_match_data_create(1, nullptr));
  made.state_->context.reset(pcre2_match_context_create(nullptr));
  if (!made.state_->data || !made.state_->context) return out_of_memory_error();
  pcre2_set_heap_limit(made.state_->context.get(), kHeapKib);
  return made;
}

void Regex::Finder::begin(std::string_view text) {
  const Code* code = state_->regex->code_.get();
  state_->text = code == nullptr || code->names_newer ? text : with_older_characters(text, state_->older);
  state_->from = 0;
  state_->last_end = std::string_view::npos;
}

Result<Regex::Match> Regex::Finder::next() {
  State& state = *state_;
  for (;;) {
    if (state.from > state.text.size()) return kNone;
    TESSERA_TRY(const Match match, search(state.from));
    if (match.begin == std::string_view::npos) {
      state.from = state.text.size() + 1;
      return kNone;
    }
    if (match.begin < match.end || match.end != state.last_end) {
      state.from = state.last_end = match.end;
      return match;
    }
    ++state.from;
    while (state.from < state.text.size() && (static_cast<unsigned char>(state.text[state.from]) & 0xC0u) == 0x80u) ++state.from;
  }
}

// Searches for the next match. The search first runs under a low limit of steps, and costs nothing if the limit suffices. If it does not,
// the steps are charged to the text's fuel, and the search runs again under a higher limit. So the work of all searches in a text is
// bounded.
Result<Regex::Match> Regex::Finder::search(std::size_t from) {
  const Regex& regex = *state_->regex;
  const std::string_view text = state_->text;
  if (!regex.code_) {
    if (regex.text_.empty()) return kNone;
    const std::size_t begin = text.find(regex.text_, from);
    return begin == text.npos ? kNone : Match{begin, begin + regex.text_.size()};
  }
  const std::uint64_t fuel = fuel_for(text.size());
  const auto patience = patience_for(text.size());
  const auto too_much = [&](std::string_view why) {
    return make_error(ErrorCode::unsupported, "the pattern \"{}\" takes too much work on this text ({}): split the text, or use another tokenizer",
                      printable(regex.text_, 120), why);
  };
  std::uint32_t options = PCRE2_NO_UTF_CHECK;
  for (std::uint32_t steps = kFreeSteps;;) {
    pcre2_set_match_limit(state_->context.get(), steps);
    const auto begin = std::chrono::steady_clock::now();
    const int found = pcre2_match(regex.code_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options,
                                  state_->data.get(), state_->context.get());
    state_->took += std::chrono::steady_clock::now() - begin;
    if (state_->took > patience) return too_much("time limit exceeded");
    if (found == PCRE2_ERROR_NOMATCH) return kNone;
    if (found == PCRE2_ERROR_NOMEMORY) return out_of_memory_error();
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      options |= PCRE2_NO_JIT;
      continue;
    }
    if (found == PCRE2_ERROR_MATCHLIMIT && state_->used + steps < fuel) {
      state_->used += steps;
      steps = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{steps} * 4, 0xFFFFFFF0u));
      continue;
    }
    if (found < 0) return too_much(pcre2_message(found));
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(state_->data.get());
    return Match{bounds[0], std::max(bounds[0], bounds[1])};
  }
}

}  // namespace tessera::detail
