#include "text/pipeline/pipeline.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "text/models/byte_alphabet.hpp"
#include "text/pre_tokenizer/pre_tokenizer.hpp"
#include "text/rules/json/decoder_rules.hpp"
#include "text/rules/json/normalizer_rules.hpp"
#include "text/rules/json/post_processor_rules.hpp"
#include "text/rules/json/splitter_rules.hpp"

namespace tessera::detail {
namespace {

Result<std::vector<std::uint32_t>> checked(const std::vector<std::int64_t>& ids, std::uint32_t tokens) {
  std::vector<std::uint32_t> made;
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= static_cast<std::int64_t>(tokens)) {
      return error_at(ErrorCode::corrupt_file, "tokenizer.json: post_processor", "token {} is not in a vocabulary of {}", id, tokens);
    }
    made.push_back(static_cast<std::uint32_t>(id));
  }
  return made;
}

// Returns the rules as one text, so that two tokenizers can be compared.
std::string identity_of(const TokenizerJson& json) {
  std::string text = json.normalizer.dump() + "\n" + json.pre_tokenizer.dump() + "\n" + json.decoder.dump() + "\n" + json.options + "\n";
  for (const AddedToken& token : json.added) {
    text += fmt::format("{}{}{}{}{}{} ", token.id, token.special ? 's' : '.', token.left_strip ? 'l' : '.', token.right_strip ? 'r' : '.',
                        token.single_word ? 'w' : '.', token.normalized ? 'n' : '.');
  }
  return text;
}

bool has_patterns(const Json& json) { return !json.is_null(); }

}  // namespace

Result<Pipeline> Pipeline::create(const TokenizerJson& json) {
  Pipeline made;
  TESSERA_TRY(made.normalizer_, read_normalizer(json.normalizer));
  TESSERA_TRY(made.splitter_, read_splitter(json.pre_tokenizer));
  TESSERA_TRY(made.decoder_, read_decoder(json.decoder));
  TESSERA_TRY(const Frame frame, read_frame(json.post_processor));
  TESSERA_TRY(made.front_, checked(frame.front, json.size()));
  TESSERA_TRY(made.back_, checked(frame.back, json.size()));
  TESSERA_TRY(const auto pair_front, checked(frame.pair_front, json.size()));
  TESSERA_TRY(const auto pair_between, checked(frame.pair_between, json.size()));
  TESSERA_TRY(const auto pair_back, checked(frame.pair_back, json.size()));
  const auto tokens = [](const std::vector<std::uint32_t>& ids) { return std::vector<Token>(ids.begin(), ids.end()); };
  made.pair_frame_ = {tokens(pair_front), tokens(pair_between), tokens(pair_back), frame.has_segments};
  const WordBpeRules& bpe = json.model.bpe;
  const auto& steps = made.splitter_.steps();
  const bool spells_bytes = !steps.empty() && steps.back().kind == SplitStep::Kind::bytes;
  switch (json.model.type) {
    case WordModel::bpe:
      made.model_ = spells_bytes && !bpe.byte_fallback && bpe.prefix.empty() && bpe.suffix.empty() ? TokenizerModel::gpt2 : TokenizerModel::bpe;
      break;
    case WordModel::unigram: made.model_ = TokenizerModel::unigram; break;
    case WordModel::word_piece: made.model_ = TokenizerModel::word_piece; break;
    case WordModel::word_level: made.model_ = TokenizerModel::word_level; break;
  }
  std::vector<AddedToken> plain, normalized;
  TESSERA_TRY(Normalizer::Runner runner, Normalizer::Runner::create(made.normalizer_));
  for (const AddedToken& token : json.added) {
    if (!token.normalized) {
      plain.push_back(token);
      continue;
    }
    normalized.push_back(token);
    TESSERA_TRY(const std::string_view normal, runner.run(token.text));
    normalized.back().text = std::string(normal);
  }
  made.plain_ = AddedTokens(std::move(plain));
  made.normalized_ = AddedTokens(std::move(normalized));
  made.rules_ = json.model;
  made.identity_ = identity_of(json);
  return made;
}

Status Pipeline::finish(TokenizerJson& json, const Vocabulary& vocabulary, const std::stop_token& stop) {
  if (rules_.type == WordModel::bpe) {
    TESSERA_TRY(merges_, MergeTable::load_parts(json.merges.values(), rules_.bpe.prefix.size(), vocabulary, stop));
    if (rules_.bpe.ranks_of_results) merges_.share_ranks();
    json.merges = TextList();
    cuts_ = MarkCuts(vocabulary, rules_.bpe);
    if (model_ == TokenizerModel::gpt2) {
      words_are_bytes_ = true;
      for (unsigned byte = 0; byte < 256; ++byte) words_are_bytes_ &= vocabulary.byte_token(static_cast<unsigned char>(byte)) != kNoToken;
      if (words_are_bytes_) (void)splitter_.take_last_bytes();
    }
    return {};
  }
  if (rules_.type == WordModel::unigram) {
    TESSERA_TRY(unigram_, UnigramModel::of_texts(vocabulary, std::move(json.scores), json.least_score, rules_.bpe.byte_fallback, stop));
  } else if (rules_.type == WordModel::word_piece) {
    if (!texts_.build(vocabulary, stop, PieceOrder::Spelling::text)) return loading_stopped();
  }
  return {};
}

std::uint64_t Pipeline::plan_bytes(const TokenizerJson& json) noexcept {
  std::uint64_t added = 0;
  for (const AddedToken& token : json.added) added += token.text.size();
  const std::uint64_t automata = TextAutomaton::plan_bytes(json.added.size(), 4 * added) + json.added.size() * (sizeof(AddedToken) + 64) + 2 * added;
  std::uint64_t patterns = 0;
  for (const Json* rule : {&json.normalizer, &json.pre_tokenizer, &json.decoder}) patterns += has_patterns(*rule) ? PreTokenizer::kPlannedBytes : 0;
  const std::uint64_t words = json.model.type == WordModel::bpe          ? MergeTable::plan_bytes(json.merges.size() / 2)
                              : json.model.type == WordModel::word_level ? 0
                                                                         : json.size() * std::uint64_t{sizeof(std::uint32_t) + sizeof(double)};
  return sizeof(Pipeline) + automata + patterns + words;
}

std::uint64_t Pipeline::memory_bytes() const noexcept {
  return sizeof(Pipeline) + normalizer_.memory_bytes() + splitter_.memory_bytes() + decoder_.memory_bytes() + plain_.memory_bytes() +
         normalized_.memory_bytes() + merges_.memory_bytes() + (unigram_ ? unigram_->memory_bytes() : 0) + texts_.memory_bytes() +
         identity_.capacity();
}

void Pipeline::set_bos(std::uint32_t bos, bool adds) {
  const bool has = std::ranges::find(front_, bos) != front_.end();
  if (adds && !has) front_.insert(front_.begin(), bos);
  if (!adds) std::erase(front_, bos);
}

void Pipeline::set_eos(std::uint32_t eos, bool adds) {
  const bool has = std::ranges::find(back_, eos) != back_.end();
  if (adds && !has) back_.push_back(eos);
  if (!adds) std::erase(back_, eos);
}

// Encodes one text, with working memory.
class Pipeline::Encoder {
 public:
  Encoder(const Pipeline& pipeline, const Vocabulary& vocabulary, Special special, TokenList& out)
      : pipeline_(pipeline), vocabulary_(vocabulary), special_(special), out_(out), bytes_(vocabulary, pipeline.merges_),
        bpe_(vocabulary, pipeline.merges_, pipeline.rules_.bpe, pipeline.cuts_),
        word_piece_(vocabulary, pipeline.texts_, pipeline.rules_.word_piece) {
    if (pipeline.unigram_) unigram_.emplace(vocabulary, *pipeline.unigram_);
  }

  Status run(std::string_view text) {
    TESSERA_TRY(normalizer_, Normalizer::Runner::create(pipeline_.normalizer_));
    TESSERA_TRY(splitter_, Splitter::Runner::create(pipeline_.splitter_));
    return pipeline_.plain_.split(text, special_, [&](std::size_t begin, std::size_t end, std::uint32_t id) -> Status {
      if (id == AddedTokens::kText) return encode_between(text.substr(begin, end - begin), begin == 0);
      out_.add(id);
      return {};
    });
  }

 private:
  // Encodes a text without plain added tokens. Patterns cannot match bytes that are not UTF-8, so such bytes are encoded by themselves.
  Status encode_between(std::string_view text, bool at_origin) {
    while (!text.empty()) {
      const Utf8Run run = utf8_run(text);
      const std::string_view part = text.substr(0, run.size);
      if (run.valid) {
        TESSERA_TRY_STATUS(encode_valid(part, at_origin));
      } else {
        encode_bytes(part);
      }
      at_origin = false;
      text.remove_prefix(run.size);
    }
    return {};
  }

  Status encode_valid(std::string_view text, bool at_origin) {
    TESSERA_TRY(const std::string_view normal, normalizer_.run(text));
    const std::size_t origin = at_origin ? normalizer_.origin() : 0;
    const Splitter::Word word = [this](std::string_view one) { return encode_word(one); };
    return pipeline_.normalized_.split(normal, special_, [&](std::size_t begin, std::size_t end, std::uint32_t id) -> Status {
      if (id == AddedTokens::kText) return splitter_.run(normal.substr(begin, end - begin), origin - std::min(origin, begin), word);
      out_.add(id);
      return {};
    });
  }

  Status encode_word(std::string_view word) {
    switch (pipeline_.rules_.type) {
      case WordModel::bpe:
        if (pipeline_.words_are_bytes_) encode_byte_word(word);
        else bpe_.encode(word, out_);
        return {};
      case WordModel::unigram: unigram_->encode_normal(word, out_); return {};
      case WordModel::word_piece: word_piece_.encode(word, out_); return {};
      case WordModel::word_level: break;
    }
    const std::uint32_t id = vocabulary_.find_ordinary(word);
    if (id != kNoToken || vocabulary_.stand_in() != kNoToken) out_.add(id != kNoToken ? id : vocabulary_.stand_in());
    return {};
  }

  void encode_byte_word(std::string_view word) {
    if (pipeline_.rules_.bpe.ignore_merges && word.size() <= vocabulary_.longest_text()) {
      spelled_.clear();
      spell_bytes(word, spelled_);
      if (const std::uint32_t id = vocabulary_.find_ordinary(spelled_); id != kNoToken) return out_.add(id);
    }
    bytes_.encode(word, out_);
  }

  // Encodes bytes that are not UTF-8: as their tokens, or as unknown.
  void encode_bytes(std::string_view bytes) {
    if (pipeline_.words_are_bytes_) return bytes_.encode(bytes, out_);
    bool after_unknown = false;
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      const bool falls_back = pipeline_.rules_.bpe.byte_fallback || pipeline_.model_ == TokenizerModel::gpt2;
      const std::uint32_t id = falls_back ? vocabulary_.byte_token(byte) : kNoToken;
      if (id != kNoToken) out_.add(id);
      else if (!after_unknown && vocabulary_.stand_in() != kNoToken) out_.add(vocabulary_.stand_in());
      after_unknown = id == kNoToken;
    }
  }

  const Pipeline& pipeline_;
  const Vocabulary& vocabulary_;
  Special special_;
  TokenList& out_;
  Normalizer::Runner normalizer_;
  Splitter::Runner splitter_;
  ByteBpe bytes_;
  WordBpe bpe_;
  WordPiece word_piece_;
  std::optional<Unigram> unigram_;
  std::string spelled_;
};

Status Pipeline::encode(std::string_view text, Special special, const Vocabulary& vocabulary, TokenList& out) const {
  return Encoder(*this, vocabulary, special, out).run(text);
}

}  // namespace tessera::detail
