#include "text/pipeline/decoder.hpp"

#include <utility>

#include "core/guard.hpp"
#include "text/models/byte_alphabet.hpp"
#include "text/tokenizer_metadata.hpp"

namespace tessera::detail {
namespace {

using DecoderStepKind = DecoderStep::Kind;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::size_t at = text.find(from);
  if (at == text.npos) return;
  std::string made;
  std::size_t done = 0;
  for (; at != text.npos; at = text.find(from, done)) {
    made.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = std::move(made.append(text, done));
}

// The replacements of the crate `tokenizers` (decoders/wordpiece.rs, cleanup), in its order.
constexpr std::pair<std::string_view, std::string_view> kCleanUp[] = {
    {" .", "."},     {" ?", "?"},   {" !", "!"},            {" ,", ","},   {" ' ", "'"},  {" n't", "n't"},
    {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

void strip(const DecoderStep& step, std::string& text) {
  std::string_view rest = text;
  for (std::uint64_t i = 0; i < step.left && !step.text.empty() && rest.starts_with(step.text); ++i) rest.remove_prefix(step.text.size());
  for (std::uint64_t i = 0; i < step.right && !step.text.empty() && rest.ends_with(step.text); ++i) rest.remove_suffix(step.text.size());
  if (rest.size() < text.size()) text = std::string(rest);
}

}  // namespace

bool Decoder::ends_word(std::string_view token) const noexcept {
  for (const DecoderStep& step : steps_) {
    if (step.kind == DecoderStepKind::end_of_word) return !step.text.empty() && token.ends_with(step.text);
  }
  return false;
}

std::uint64_t Decoder::memory_bytes() const noexcept {
  std::uint64_t total = sizeof(Decoder) + stripped_.capacity() + steps_.capacity() * sizeof(DecoderStep);
  for (const DecoderStep& step : steps_) total += step.text.capacity() + step.pattern.memory_bytes();
  return total;
}

Result<Decoder::Runner> Decoder::Runner::create(const Decoder& decoder) {
  Runner made;
  made.decoder_ = &decoder;
  made.finders_.resize(decoder.steps_.size());
  for (std::size_t i = 0; i < made.finders_.size(); ++i) {
    if (decoder.steps_[i].kind != DecoderStepKind::replace) continue;
    TESSERA_TRY(made.finders_[i], Regex::Finder::create(decoder.steps_[i].pattern));
  }
  return made;
}

Status Decoder::Runner::run_step(std::size_t index, bool first, std::string& text) {
  const DecoderStep& step = decoder_->steps_[index];
  switch (step.kind) {
    case DecoderStepKind::bytes: {
      scratch_.resize(text.size());
      if (const auto count = read_bytes(text, scratch_.data())) text.assign(scratch_, 0, *count);
      break;
    }
    case DecoderStepKind::replace: {
      Regex::Finder& finder = finders_[index];
      finder.begin(text);
      scratch_.clear();
      std::size_t done = 0;
      for (;;) {
        TESSERA_TRY(const Regex::Match match, finder.next());
        if (match.begin == text.npos) break;
        scratch_.append(text, done, match.begin - done).append(step.text);
        done = match.end;
      }
      if (done > 0 || !scratch_.empty()) text = scratch_.append(text, done);
      break;
    }
    case DecoderStepKind::byte_fallback:
      if (const auto byte = byte_of(text)) text.assign(1, static_cast<char>(*byte));
      break;
    case DecoderStepKind::strip: strip(step, text); break;
    case DecoderStepKind::metaspace: replace_all(text, step.text, first && step.drops_first ? "" : " "); break;
    case DecoderStepKind::word_piece:
      if (first) break;
      if (text.starts_with(step.text)) text.erase(0, step.text.size());
      else text.insert(text.begin(), ' ');
      break;
    case DecoderStepKind::clean_up:
      for (const auto& [from, to] : kCleanUp) replace_all(text, from, to);
      break;
    case DecoderStepKind::end_of_word: replace_all(text, step.text, " "); break;
    case DecoderStepKind::spaces:
      if (!first) text.insert(text.begin(), ' ');
      break;
  }
  return {};
}

Result<std::string_view> Decoder::Runner::run(std::string_view token, bool first) {
  text_.assign(token);
  for (std::size_t i = 0; i < decoder_->steps_.size(); ++i) TESSERA_TRY_STATUS(run_step(i, first, text_));
  return std::string_view(text_);
}

}  // namespace tessera::detail
