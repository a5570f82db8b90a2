#include "text/models/unigram.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/utf8.hpp"

namespace tessera::detail {
namespace {

// Marks an unknown character in last_, in place of a token's id: the entry is this value plus the character's size in bytes.
constexpr std::uint32_t kUnknownCharacter = 0x80000000u;
constexpr double kUnknownPenalty = 10;
constexpr std::size_t kLargeNormal = std::size_t{1} << 16;
constexpr std::size_t kLongestNormal = std::size_t{2} << 30;

// Returns how many bytes the first character has. A byte that is not UTF-8 counts as a character.
std::size_t character_size(std::string_view text) noexcept {
  const Utf8Step step = utf8_step(text);
  return step.kind == Utf8Kind::valid ? step.size : 1;
}

}  // namespace

Result<UnigramModel> UnigramModel::load(const TokenizerMetadata& metadata, const Vocabulary& vocabulary,
                                        const std::stop_token& stop) {
  UnigramModel model;
  model.charsmap = Charsmap(metadata.charsmap);
  model.add_space_prefix = metadata.rules.add_space_prefix;
  model.remove_extra_spaces = metadata.rules.remove_extra_spaces;
  if (!model.pieces.build(vocabulary, stop)) return loading_stopped();
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) == TokenType::normal) least = std::min(least, double{vocabulary.score(id)});
  }
  model.unknown_score = static_cast<float>((least == std::numeric_limits<double>::infinity() ? 0 : least) - kUnknownPenalty);
  model.byte_fallback = true;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::uint32_t id = vocabulary.byte_token(static_cast<unsigned char>(byte));
    model.byte_fallback &= id != kNoToken && vocabulary.type(id) == TokenType::byte;
  }
  return model;
}

Result<UnigramModel> UnigramModel::of_texts(const Vocabulary& vocabulary, std::vector<double> scores, double least, bool byte_fallback,
                                            const std::stop_token& stop) {
  UnigramModel model;
  model.scores = std::move(scores);
  if (!model.pieces.build(vocabulary, stop, PieceOrder::Spelling::text)) return loading_stopped();
  model.unknown_score = least - kUnknownPenalty;
  model.byte_fallback = byte_fallback;
  for (unsigned byte = 0; byte < 256; ++byte) model.byte_fallback &= vocabulary.byte_token(static_cast<unsigned char>(byte)) != kNoToken;
  return model;
}

std::uint64_t UnigramModel::plan_bytes(const TokenizerMetadata& metadata) noexcept {
  return PieceOrder::plan_bytes(metadata) + Charsmap::plan_bytes(metadata.charsmap.size());
}

Status Unigram::encode(std::string_view text, TokenList& out) {
  TESSERA_TRY_STATUS(normalize(text));
  search(normal_, out);
  return {};
}

void Unigram::encode_normal(std::string_view text, TokenList& out) { search(text, out); }

// Normalises a text as SentencePiece's normalizer.cc does. Exception: bytes that are not UTF-8 are kept, while SentencePiece replaces
// them by U+FFFD.
Status Unigram::normalize(std::string_view text) {
  normal_.clear();
  const bool merge = model_.remove_extra_spaces;
  const auto next = [&] {
    const Charsmap::Found found = model_.charsmap.find(text);
    const std::size_t size = found.size != 0 ? found.size : character_size(text);
    const std::string_view becomes = found.size != 0 ? found.replacement : text.substr(0, size);
    text.remove_prefix(size);
    return becomes;
  };
  for (bool in_front = merge; in_front && !text.empty();) {
    const std::string_view here = text;
    in_front = next() == " ";
    if (!in_front) text = here;
  }
  if (text.empty()) return {};
  normal_.reserve(text.size() + 1);
  if (model_.add_space_prefix) normal_.push_back(' ');
  for (bool after_space = merge; !text.empty();) {
    std::string_view becomes = next();
    while (after_space && becomes.starts_with(' ')) becomes.remove_prefix(1);
    if (!becomes.empty()) after_space = merge && becomes.ends_with(' ');
    normal_.append(becomes == kSpaceMark ? std::string_view(" ") : becomes);
    if (normal_.size() > kLongestNormal) {
      return make_error(ErrorCode::invalid_argument, "the normaliser makes more than {} bytes of the text", kLongestNormal);
    }
  }
  while (merge && normal_.ends_with(' ')) normal_.pop_back();
  if (normal_.capacity() > kLargeNormal && normal_.capacity() / 5 * 4 > normal_.size()) normal_.shrink_to_fit();
  return {};
}

// Considers a token for the bytes [begin, end) of the text. `score`: the token's score; `token`: its id. Takes the best way to cut the
// text up to `begin` into tokens, and adds this token. If the sum of scores is higher than that of the best known way up to `end`, the
// new way becomes the best way up to `end`.
void Unigram::offer(std::size_t begin, std::size_t end, double score, std::uint32_t token) {
  const auto at = [&](std::size_t position) -> double& { return scores_[position % scores_.size()]; };
  if (end > known_) {
    const std::size_t needed = end - segment_ + 1;
    if (needed > last_.capacity()) {  // grows at most to what is left of the text
      last_.reserve(std::max(needed, std::min(2 * last_.capacity() + 64, text_.size() - segment_ + 1)));
    }
    last_.resize(needed, kNoToken);
    known_ = end;
  }
  double sum = at(begin) + score;
  if (model_.scores.empty()) sum = static_cast<float>(sum);
  std::uint32_t& last = last_[end - segment_];
  if (last != kNoToken && !(sum > at(end))) return;
  last = token;
  at(end) = sum;
}

// Keeps the sums of scores exact enough in a long text, as SentencePiece 0.2.3 does: if the score of the best way to `at` is above
// 100,000 in magnitude, subtracts it from the scores of `at` and of all later offsets. (A float has few digits left for the differences
// between large sums.) Only for SentencePiece's models, whose scores are floats.
void Unigram::shift_scores(std::size_t at) {
  constexpr double kMostScore = 100'000;
  const double shift = scores_[at % scores_.size()];
  if (!model_.scores.empty() || (shift >= -kMostScore && shift <= kMostScore)) return;
  for (std::size_t i = at; i <= known_; ++i) {
    double& score = scores_[i % scores_.size()];
    if (i == at || last_[i - segment_] != kNoToken) score = static_cast<float>(score - shift);
  }
}

void Unigram::search(std::string_view text, TokenList& out) {
  text_ = text;
  const auto begin_segment = [&](std::size_t at) {
    segment_ = known_ = at;
    last_.assign(1, kNoToken);
    // The sums of scores go on from segment to segment, as in SentencePiece, instead of beginning at 0 again. Sums are rounded, and where
    // a sum is rounded decides between cuts with equal scores.
    if (at == 0) scores_[0] = 0;
  };
  after_unknown_ = false;
  begin_segment(0);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t character = character_size(text.substr(at));
    shift_scores(at);
    bool whole_character = false;
    PieceOrder::Range range = model_.pieces.starting_with(static_cast<unsigned char>(text[at]));
    for (std::size_t end = at + 1; !range.empty(); ++end) {
      if (const std::uint32_t id = model_.pieces.whole(range, vocabulary_); id != kNoToken) {
        // The text of the unknown token counts as unknown too. (Only a tokenizer.json finds it.)
        const bool known = vocabulary_.type(id) != TokenType::unknown;
        offer(at, end, model_.score(id, vocabulary_), known ? id : kUnknownCharacter | static_cast<std::uint32_t>(end - at));
        whole_character |= end == at + character;
      }
      if (end == text.size()) break;
      range = model_.pieces.narrowed(range, static_cast<unsigned char>(text[end]), vocabulary_);
    }
    if (!whole_character) {
      offer(at, at + character, model_.unknown_score, kUnknownCharacter | static_cast<std::uint32_t>(character));
    }
    at += character;
    if (known_ > at) continue;
    end_segment(at, out);
    begin_segment(at);
  }
  end_unknown(out);
}

// Ends a segment at offset `end`, and adds the tokens of its best cut to `out`. last_ has for each offset the token that ends there, so
// the cut can only be followed from the segment's end back to its beginning. On the way back, each token is moved in last_ from the
// offset of its end to the offset of its beginning. Then the tokens are added in order.
void Unigram::end_segment(std::size_t end, TokenList& out) {
  const auto size_of = [&](std::uint32_t token) {
    return (token & kUnknownCharacter) != 0 ? token & ~kUnknownCharacter : static_cast<std::uint32_t>(model_.pieces.spelled(token, vocabulary_).size());
  };
  std::size_t count = 0;
  std::uint32_t token = last_[end - segment_];
  for (std::size_t at = end - segment_; at > 0; ++count) {
    at -= size_of(token);
    std::swap(token, last_[at]);
  }
  if (count >= kLargeNormal) out.reserve(count);
  for (std::size_t at = segment_; at < end;) {
    const std::uint32_t id = last_[at - segment_];
    const std::string_view piece = text_.substr(at, size_of(id));
    emit(id, piece, out);
    at += piece.size();
  }
}

void Unigram::end_unknown(TokenList& out) {
  const std::string_view run = text_.substr(unknown_begin_, unknown_end_ - unknown_begin_);
  unknown_begin_ = unknown_end_ = 0;
  if (run.empty()) return;
  const std::uint32_t unknown = vocabulary_.stand_in();
  if (unknown != kNoToken && run == vocabulary_.text(unknown)) return out.add(unknown);
  for (const char c : run) out.add(vocabulary_.byte_token(static_cast<unsigned char>(c)));
}

void Unigram::emit(std::uint32_t token, std::string_view piece, TokenList& out) {
  const bool unknown = (token & kUnknownCharacter) != 0;
  if (!unknown) {
    end_unknown(out);
    out.add(token);
  } else if (model_.byte_fallback && !model_.scores.empty()) {
    const auto at = static_cast<std::size_t>(piece.data() - text_.data());
    if (unknown_begin_ == unknown_end_) unknown_begin_ = at;
    unknown_end_ = at + piece.size();
  } else if (model_.byte_fallback) {
    for (const char c : piece == " " ? kSpaceMark : piece) out.add(vocabulary_.byte_token(static_cast<unsigned char>(c)));
  } else if (!after_unknown_ && vocabulary_.stand_in() != kNoToken) {
    out.add(vocabulary_.stand_in());
  }
  after_unknown_ = unknown;
}

}  // namespace tessera::detail
