#include "text/pipeline/normalizer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "text/models/byte_alphabet.hpp"
#include "text/pipeline/characters.hpp"

namespace tessera::detail {
namespace {

using NormalizerStepKind = NormalizerStep::Kind;

constexpr std::size_t kMostGrowth = 64;                          // limit for the length of a normal form, as a multiple of its text's length
constexpr std::size_t kLongestSmall = std::size_t{64} << 20;     // in bytes; a normal form of this length is always accepted
constexpr std::size_t kLargeBuffer = std::size_t{1} << 16;

// Calls change(character, its bytes) for each character of the text.
template <class Change>
void each_character(std::string_view text, const Change& change) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const CodePoint c = next_code_point(text, at);
    change(c, text.substr(begin, at - begin));
  }
}

std::string_view trimmed(std::string_view text, bool left, bool right) noexcept {
  while (left && !text.empty()) {
    std::size_t next = 0;
    if (!is_white_space(next_code_point(text, next))) break;
    text.remove_prefix(next);
  }
  while (right && !text.empty()) {
    const std::size_t last = previous_character(text, text.size());
    std::size_t at = last;
    if (!is_white_space(next_code_point(text, at))) break;
    text = text.substr(0, last);
  }
  return text;
}

// Removes control characters, and makes every white space a space, as BERT's cleaning does.
void clean(std::string_view text, std::string& out) {
  each_character(text, [&](CodePoint c, std::string_view bytes) {
    if (c == 0 || c == 0xFFFD || is_other(c)) return;
    out.append(is_white_space(c) ? std::string_view(" ") : bytes);
  });
}

// Does what SentencePiece's rule "nmt" does.
void normalize_nmt(std::string_view text, std::string& out) {
  each_character(text, [&](CodePoint c, std::string_view bytes) {
    const bool removed = (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    if (removed) return;
    const bool space = c == 9 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
                       c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    out.append(space ? std::string_view(" ") : bytes);
  });
}

// Replaces parts of a text by a charsmap, as the crate spm_precompiled does. If a grapheme (what a reader sees as one character) has at
// most five bytes and begins with a sequence of the charsmap, the whole grapheme becomes the replacement. Otherwise each character of the
// grapheme is looked up and replaced by itself.
void apply_charsmap(const Charsmap& map, std::string_view text, std::string& out) {
  constexpr std::size_t kLongestWhole = 5;
  const auto replace = [&](std::string_view part) {
    const Charsmap::Found found = map.find_shortest(part);
    if (found.size == 0) return false;
    out.append(found.replacement);
    return true;
  };
  utf8proc_int32_t state = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    CodePoint last = next_code_point(text, end);
    while (end < text.size()) {
      std::size_t next = end;
      const CodePoint c = next_code_point(text, next);
      if (utf8proc_grapheme_break_stateful(last, c, &state)) break;
      last = c;
      end = next;
    }
    const std::string_view grapheme = text.substr(begin, end - begin);
    begin = end;
    if (grapheme.size() <= kLongestWhole && replace(grapheme)) continue;
    each_character(grapheme, [&](CodePoint, std::string_view bytes) {
      if (!replace(bytes)) out.append(bytes);
    });
  }
}

bool is_ascii(std::string_view text) noexcept {
  unsigned all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

}  // namespace

std::uint64_t Normalizer::memory_bytes() const noexcept {
  std::uint64_t total = steps_.capacity() * sizeof(NormalizerStep);
  for (const NormalizerStep& step : steps_) total += step.text.capacity() + step.map.memory_bytes() + step.pattern.memory_bytes();
  return total;
}

Result<Normalizer::Runner> Normalizer::Runner::create(const Normalizer& normalizer) {
  Runner made;
  made.normalizer_ = &normalizer;
  made.finders_.resize(normalizer.steps_.size());
  for (std::size_t i = 0; i < made.finders_.size(); ++i) {
    if (normalizer.steps_[i].kind != NormalizerStepKind::replace) continue;
    TESSERA_TRY(made.finders_[i], Regex::Finder::create(normalizer.steps_[i].pattern));
  }
  return made;
}

Status Normalizer::Runner::replace(const NormalizerStep& step, Regex::Finder& finder, std::string_view text, std::string& out) {
  std::size_t done = 0, origin = 0;
  finder.begin(text);
  for (;;) {
    TESSERA_TRY(const Regex::Match match, finder.next());
    if (match.begin == text.npos || out.size() > longest_) break;
    if (done < origin_) origin = out.size() + std::min(match.begin, origin_) - done;
    out.append(text.substr(done, match.begin - done)).append(step.text);
    // A replacement of several characters counts as coming from the last of them.
    if (match.begin < match.end && previous_character(text, match.end) < origin_) origin = out.size();
    done = match.end;
  }
  if (done < origin_) origin = out.size() + origin_ - done;
  out.append(text.substr(done));
  origin_ = origin;
  return {};
}

Result<std::string_view> Normalizer::Runner::run_step(std::size_t index, std::string_view text, std::string& out) {
  const NormalizerStep& step = normalizer_->steps_[index];
  out.clear();
  switch (step.kind) {
    case NormalizerStepKind::normal_form:
      if (is_ascii(text)) return text;
      if (step.form.composed && !step.form.compatibility) {
        const std::string_view normal = nfc_.normalize(text);
        if (normal.data() == text.data()) return text;
        out.assign(normal);
        break;
      }
      former_.normalize(text, step.form, out);
      break;
    case NormalizerStepKind::lower_case:
      each_character(text, [&](CodePoint c, std::string_view) {
        if (c < 0x80) out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
        else append_lower_case(out, c);
      });
      break;
    case NormalizerStepKind::remove_marks:
    case NormalizerStepKind::remove_nonspacing:
      if (is_ascii(text)) return text;
      each_character(text, [&](CodePoint c, std::string_view bytes) {
        if (!(step.kind == NormalizerStepKind::remove_marks ? is_mark(c) : is_nonspacing_mark(c))) out.append(bytes);
      });
      break;
    case NormalizerStepKind::replace: TESSERA_TRY_STATUS(replace(step, finders_[index], text, out)); break;
    case NormalizerStepKind::prepend: out.append(step.text).append(text); break;
    case NormalizerStepKind::append: out.append(text).append(step.text); break;
    case NormalizerStepKind::strip: {
      const std::string_view rest = trimmed(text, step.left, step.right);
      return rest;
    }
    case NormalizerStepKind::clean: clean(text, out); break;
    case NormalizerStepKind::surround_ideographs:
      if (is_ascii(text)) return text;
      each_character(text, [&](CodePoint c, std::string_view bytes) {
        if (is_cjk_ideograph(c)) out.append(" ").append(bytes).append(" ");
        else out.append(bytes);
      });
      break;
    case NormalizerStepKind::nmt: normalize_nmt(text, out); break;
    case NormalizerStepKind::charsmap: apply_charsmap(step.map, text, out); break;
    case NormalizerStepKind::bytes: spell_bytes(text, out); break;
  }
  return std::string_view(out);
}

// Sets origin_ after a step of any kind except replace. The step has turned `before` into `after`.
Status Normalizer::Runner::follow_origin(std::size_t index, std::string_view before, std::string_view after) {
  const NormalizerStep& step = normalizer_->steps_[index];
  if (origin_ == 0 || after.data() == before.data()) return {};
  if (step.kind == NormalizerStepKind::prepend) {
    origin_ += step.text.size();
  } else if (step.kind == NormalizerStepKind::strip) {
    const std::size_t removed = before.size() - trimmed(before, step.left, false).size();
    origin_ -= std::min(origin_, removed);
  } else if (step.kind != NormalizerStepKind::append) {
    std::string front;
    const std::string beginning(before.substr(0, origin_));
    TESSERA_TRY(const std::string_view made, run_step(index, beginning, front));
    origin_ = std::min(made.size(), after.size());
    if (step.kind == NormalizerStepKind::normal_form && origin_ > 0) {  // the first character may have been composed with the next one
      std::size_t first = 0;
      (void)next_code_point(after, first);
      origin_ = std::max(origin_, first);
    }
  }
  return {};
}

Result<std::string_view> Normalizer::Runner::run(std::string_view text) {
  origin_ = 0;
  if (!text.empty()) (void)next_code_point(text, origin_);
  longest_ = kLongestSmall + kMostGrowth * text.size();
  for (std::string& buffer : buffers_) {
    if (buffer.capacity() > kLargeBuffer) std::string().swap(buffer);
  }
  std::size_t at = 0;  // index of the buffer for the next result; the other buffer may have the text
  for (std::size_t i = 0; i < normalizer_->steps_.size() && !text.empty(); ++i) {
    const std::string_view before = text;
    TESSERA_TRY(text, run_step(i, text, buffers_[at]));
    if (normalizer_->steps_[i].kind != NormalizerStepKind::replace) {
      TESSERA_TRY_STATUS(follow_origin(i, before, text));
    }
    if (text.data() == buffers_[at].data()) at = 1 - at;
    if (text.size() > longest_) {
      return make_error(ErrorCode::invalid_argument, "the tokenizer's normalizer makes more than {} bytes of the text: encode a shorter text", longest_);
    }
  }
  return text;
}

}  // namespace tessera::detail
