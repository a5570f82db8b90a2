#include "text/pre_tokenizer/pre_tokenizer.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "text/newer_characters.hpp"
#include "text/pcre2.hpp"

namespace tessera::detail {
namespace {

// Returns the pattern with each \s replaced by a set of the characters with Unicode's property White_Space. This is what \s means in the
// regex libraries of the original tokenizers; PCRE2's \s includes U+180E too.
std::string with_white_space(std::string_view pattern) {
  constexpr std::string_view members = R"(\t-\r\x{85}\p{Z})";
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\') {
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out.push_back(c);
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's' && in_class) {
      out.append(members);
    } else if (escaped == 's' || escaped == 'S') {
      out.append(escaped == 's' ? "[" : "[^").append(members).append("]");
    } else {
      out.append({c, escaped});
    }
  }
  return out;
}

Error pcre2_error(int code, std::string_view what) {
  if (is_pcre2_memory_error(code) || code == PCRE2_ERROR_HEAPLIMIT) return out_of_memory_error();
  return make_error(ErrorCode::internal, "the pre-tokenizer '{}' failed: {}", what, pcre2_message(code));
}

}  // namespace

struct PreTokenizer::Compiled {
  std::vector<Pcre2Code> patterns;
};

PreTokenizer::PreTokenizer(const PreTokenizerSpec& spec, std::unique_ptr<Compiled> compiled) noexcept
    : spec_(&spec), compiled_(std::move(compiled)) {}
PreTokenizer::PreTokenizer() noexcept = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(const PreTokenizerSpec& spec) {
  auto compiled = std::make_unique<Compiled>();
  compiled->patterns.reserve(spec.patterns.size());
  for (const std::string_view pattern : spec.patterns) {
    int error = 0;
    Pcre2Code code = compile_pcre2(with_white_space(pattern), PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, nullptr, error);
    if (!code) return pcre2_error(error, spec.name);
    compiled->patterns.push_back(std::move(code));
  }
  return PreTokenizer(spec, std::move(compiled));
}

std::uint64_t PreTokenizer::memory_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const Pcre2Code& code : compiled_->patterns) total += pcre2_memory_bytes(code.get());
  return total;
}

struct PreTokenizer::Splitter::Match {
  Pcre2MatchData data;
  Pcre2MatchContext context;
};

PreTokenizer::Splitter::Splitter(const PreTokenizer& owner, std::unique_ptr<Match> match) noexcept
    : owner_(&owner), match_(std::move(match)) {}
PreTokenizer::Splitter::Splitter() noexcept = default;
PreTokenizer::Splitter::Splitter(Splitter&&) noexcept = default;
PreTokenizer::Splitter& PreTokenizer::Splitter::operator=(Splitter&&) noexcept = default;
PreTokenizer::Splitter::~Splitter() = default;

Result<PreTokenizer::Splitter> PreTokenizer::Splitter::create(const PreTokenizer& owner, std::size_t longest_text) {
  auto match = std::make_unique<Match>();
  match->data.reset(pcre2_match_data_create(1, nullptr));
  match->context.reset(pcre2_match_context_create(nullptr));
  if (!match->data || !match->context) return out_of_memory_error();
  // Each pattern takes at most a few steps for each byte. A pattern that takes more is a defect. The limit turns a hang into an error.
  const std::size_t steps = 1'000'000 + 32 * longest_text;
  pcre2_set_match_limit(match->context.get(), static_cast<std::uint32_t>(std::min<std::size_t>(steps, 0xFFFFFFFFu)));
  pcre2_set_heap_limit(match->context.get(), 64 << 10);  // in KiB; only the interpreter uses this heap
  return Splitter(owner, std::move(match));
}

Status PreTokenizer::Splitter::split(std::string_view text, const Word& word) {
  return split_from(0, {text, with_older_characters(text, older_)}, word);
}

// Splits a piece by the patterns from index `pattern` on. Each piece that one pattern makes is split by the next pattern at once, so no
// list of pieces is needed.
Status PreTokenizer::Splitter::split_from(std::size_t pattern, Piece piece, const Word& word) {
  if (pattern == owner_->compiled_->patterns.size()) {
    word(piece.text);
    return {};
  }
  const pcre2_code* code = owner_->compiled_->patterns[pattern].get();
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.matched.data());
  std::size_t done = 0, from = 0;
  const auto hand_on = [&](std::size_t end) -> Status {
    if (end <= done) return {};
    const Piece next{piece.text.substr(done, end - done), piece.matched.substr(done, end - done)};
    done = end;
    return split_from(pattern + 1, next, word);
  };
  while (from < piece.text.size()) {
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(code, subject, piece.text.size(), from, options, match_->data.get(), match_->context.get());
    };
    int found = match(PCRE2_NO_UTF_CHECK);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) return pcre2_error(found, owner_->spec_->name);
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match_->data.get());
    const PCRE2_SIZE begin = bounds[0], end = bounds[1];  // copied, because matches of the next pattern overwrite `bounds`
    TESSERA_TRY_STATUS(hand_on(begin));
    TESSERA_TRY_STATUS(hand_on(end));
    // No pattern matches the empty text. If one did, advancing by at least one byte would still end the loop.
    from = end > from ? end : from + 1;
  }
  return hand_on(piece.text.size());
}

}  // namespace tessera::detail
