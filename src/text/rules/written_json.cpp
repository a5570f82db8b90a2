#include "text/rules/written_json.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "json/spelling.hpp"
#include "text/pre_tokenizer/pre_tokenizer_patterns.hpp"
#include "text/rules/base64.hpp"
#include "text/rules/same_tokens.hpp"
#include "text/rules/word_pieces.hpp"

namespace tessera::detail {

namespace {

constexpr std::string_view kSpacePiece = "\xE2\x96\x81";
constexpr std::string_view kByteLevelSteps = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false})";
constexpr std::string_view kSpacesToMarks = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
constexpr std::string_view kMarksToSpaces = R"({"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"})";

// The settings of a folder that has only this tokenizer.json. They serve to read the text back.
class OnlyTokenizerJson final : public Settings {
 public:
  OnlyTokenizerJson(std::string_view json, const Settings& others) : json_(json), others_(others) {}
  [[nodiscard]] std::optional<SettingValue> find(Setting setting) const noexcept override {
    switch (setting) {
      case Setting::tokenizer_json: return json_;
      case Setting::bos_token:
      case Setting::eos_token: return others_.find(setting);
      default: return std::nullopt;
    }
  }

 private:
  std::string_view json_;
  const Settings& others_;
};

class TokenizerJsonWriter {
 public:
  TokenizerJsonWriter(const Settings& settings, const Tokenizer& tokenizer, const std::stop_token& stop)
      : settings_(settings), tokenizer_(tokenizer), stop_(stop) {}

  Result<std::string> run() {
    if (has_word_pieces(settings_)) return word_pieces_as_json(settings_);
    list_tokens();
    std::vector<std::string> tried;
    switch (tokenizer_.model()) {
      case TokenizerModel::gpt2: tried = {byte_level()}; break;
      case TokenizerModel::llama: tried = characters(merges_of_scores()); break;
      case TokenizerModel::gemma4: tried = characters(listed_merges()); break;
      case TokenizerModel::unigram: tried = {unigram()}; break;
      default: break;
    }
    for (std::string& json : tried) {
      if (stop_.stop_requested()) return make_error(ErrorCode::cancelled, "writing the tokenizer was cancelled");
      const OnlyTokenizerJson own(json, settings_);
      TESSERA_TRY(const Tokenizer other, Tokenizer::from_settings(own, stop_));
      // The decoder of byte-level BPE takes letters of added tokens, such as "ö", for bytes, as in the tokenizer.json of models that have such tokens.
      const bool is_byte_level = tokenizer_.model() == TokenizerModel::gpt2;
      if (is_byte_level ? encode_alike(tokenizer_, other) : give_same_tokens(tokenizer_, other)) return std::move(json);
    }
    return error_at(ErrorCode::unsupported, settings_.place(Setting::tokenizer_model),
                    "the steps of this tokenizer cannot be said in a tokenizer.json: take the tokenizer's files from where the model was published");
  }

 private:
  void list_tokens() {
    for (std::size_t id = 0; id < tokenizer_.vocab_size(); ++id) {
      const auto token = static_cast<Token>(id);
      const TokenType type = tokenizer_.type(token);
      const std::string_view text = tokenizer_.text(token);
      texts_.emplace_back(text);
      types_.push_back(type);
      // Converters give names to rows of the embedding table that have no token.
      const bool is_row = type == TokenType::unused && text == fmt::format("[PAD{}]", id);
      if (is_row || !ids_.try_emplace(texts_.back(), id).second) is_left_out_.push_back(true);
      else is_left_out_.push_back(false);
    }
  }

  [[nodiscard]] std::string added_tokens() const {
    std::string out = "[";
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      const bool is_special = types_[id] == TokenType::control || types_[id] == TokenType::unknown;
      if (is_left_out_[id] || (!is_special && types_[id] != TokenType::user_defined)) continue;
      out.append(out.size() == 1 ? "\n    " : ",\n    ").append(fmt::format(R"({{"id":{},"content":)", id));
      append_json_string(out, texts_[id]);
      out += fmt::format(R"(,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":{}}})", is_special);
    }
    return out + "]";
  }

  // Returns the rule for a frame of BOS and EOS; `otherwise` if the tokenizer adds neither.
  [[nodiscard]] std::string post_processor(std::string_view otherwise) const {
    const auto bos = tokenizer_.adds_bos() ? tokenizer_.bos() : std::nullopt, eos = tokenizer_.adds_eos() ? tokenizer_.eos() : std::nullopt;
    if (!bos && !eos) return std::string(otherwise);
    const auto special = [&](Token token, int segment) {
      return fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":{}}}}})", json_string(tokenizer_.text(token)), segment);
    };
    const auto framed = [&](std::string_view name, int segment) {
      std::string out = bos ? special(*bos, segment) + "," : "";
      out += fmt::format(R"({{"Sequence":{{"id":"{}","type_id":{}}}}})", name, segment);
      return eos ? out + "," + special(*eos, segment) : out;
    };
    std::string tokens;
    for (const auto& token : {bos, eos}) {
      if (!token || (token == eos && bos == eos && !tokens.empty())) continue;
      const std::string text = json_string(tokenizer_.text(*token));
      tokens += fmt::format(R"({}{}:{{"id":{},"ids":[{}],"tokens":[{}]}})", tokens.empty() ? "" : ",", text, text, *token, text);
    }
    return fmt::format(R"({{"type":"TemplateProcessing","single":[{}],"pair":[{},{}],"special_tokens":{{{}}}}})", framed("A", 0), framed("A", 0),
                       framed("B", 1), tokens);
  }

  [[nodiscard]] std::string whole(std::string_view normalizer, std::string_view pre_tokenizer, std::string_view post, std::string_view decoder,
                                  std::string_view model) const {
    return fmt::format("{{\n  \"version\":\"1.0\",\n  \"truncation\":null,\n  \"padding\":null,\n  \"added_tokens\":{},\n  \"normalizer\":{},\n"
                       "  \"pre_tokenizer\":{},\n  \"post_processor\":{},\n  \"decoder\":{},\n  \"model\":{}\n}}\n",
                       added_tokens(), normalizer, pre_tokenizer, post, decoder, model);
  }

  [[nodiscard]] std::string bpe_model(std::string_view options, const std::vector<std::pair<std::string, std::string>>& merges) const {
    std::string out = fmt::format(R"({{"type":"BPE","dropout":null,{},"continuing_subword_prefix":null,"end_of_word_suffix":null,"vocab":{{)", options);
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      if (is_left_out_[id]) continue;
      if (out.back() != '{') out += ',';
      append_json_string(out, texts_[id]);
      out += fmt::format(":{}", id);
    }
    out += "},\"merges\":[";
    for (const auto& [left, right] : merges) {
      out += out.back() == '[' ? "[" : ",[";
      append_json_string(out, left);
      out += ',';
      append_json_string(out, right);
      out += ']';
    }
    return out + "]}";
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> listed_merges() const {
    std::vector<std::pair<std::string, std::string>> merges;
    const auto list = settings_.list(Setting::merges);
    if (!list || list->type() != ValueType::string) return merges;
    for (const std::string_view merge : list->strings()) {
      const std::size_t at = merge.find(' ', 1);
      if (at == std::string_view::npos) continue;
      std::string left(merge.substr(0, at)), right(merge.substr(at + 1));
      if (ids_.contains(left) && ids_.contains(right) && ids_.contains(left + right)) merges.emplace_back(std::move(left), std::move(right));
    }
    return merges;
  }

  // Returns the merges of a vocabulary with scores: each way to make a token of two others, the tokens with the best scores first.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> merges_of_scores() const {
    struct Way {
      double score;
      std::size_t whole, left, right;
    };
    std::vector<Way> ways;
    const auto scores = settings_.list(Setting::token_scores);
    const auto ordinary = [&](std::string_view text) -> std::optional<std::size_t> {
      const auto at = ids_.find(std::string(text));
      if (at == ids_.end() || types_[at->second] != TokenType::normal) return std::nullopt;
      return at->second;
    };
    for (std::size_t id = 0; scores && id < texts_.size() && id < scores->size(); ++id) {
      if (is_left_out_[id] || types_[id] != TokenType::normal) continue;
      const std::string_view text = texts_[id];
      for (std::size_t cut = 1; cut < text.size(); ++cut) {
        if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;
        const auto left = ordinary(text.substr(0, cut)), right = ordinary(text.substr(cut));
        if (left && right) ways.push_back({scores->number(id), id, *left, *right});
      }
    }
    std::ranges::sort(ways, [](const Way& a, const Way& b) {
      if (a.score != b.score) return a.score > b.score;
      return std::tie(a.whole, a.left, a.right) < std::tie(b.whole, b.left, b.right);
    });
    std::vector<std::pair<std::string, std::string>> merges;
    for (const Way& way : ways) merges.emplace_back(texts_[way.left], texts_[way.right]);
    return merges;
  }

  [[nodiscard]] std::string byte_level() const {
    const PreTokenizerSpec* spec = find_pre_tokenizer(tokenizer_.pre_tokenizer());
    std::string steps;
    for (const std::string_view pattern : spec->patterns) {
      steps.append(R"({"type":"Split","pattern":{"Regex":)");
      append_json_string(steps, pattern);
      steps.append(R"(},"behavior":"Isolated","invert":false},)");
    }
    const std::string pre = fmt::format(R"({{"type":"Sequence","pretokenizers":[{}{}]}})", steps, kByteLevelSteps);
    const std::string options = fmt::format(R"("unk_token":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":{})", spec->ignore_merges);
    return whole(spec->nfc ? R"({"type":"NFC"})" : "null", pre, post_processor(kByteLevelSteps), kByteLevelSteps, bpe_model(options, listed_merges()));
  }

  [[nodiscard]] bool has_bytes() const { return std::ranges::find(types_, TokenType::byte) != types_.end(); }
  [[nodiscard]] std::optional<std::size_t> unknown() const {
    const auto at = std::ranges::find(types_, TokenType::unknown);
    if (at == types_.end()) return std::nullopt;
    return static_cast<std::size_t>(at - types_.begin());
  }

  [[nodiscard]] static std::string marks_decoder(bool has_prefix) {
    return fmt::format(R"({{"type":"Sequence","decoders":[{}{}]}})", kMarksToSpaces, has_prefix ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "");
  }

  // Returns BPE on characters. Consecutive unknown characters become one token, or one token each.
  [[nodiscard]] std::vector<std::string> characters(const std::vector<std::pair<std::string, std::string>>& merges) const {
    std::vector<std::string> both;
    for (const bool fuses : {true, false}) both.push_back(characters(merges, fuses));
    return both;
  }
  [[nodiscard]] std::string characters(const std::vector<std::pair<std::string, std::string>>& merges, bool fuses) const {
    const bool has_prefix = tokenizer_.adds_space_prefix();
    const std::string normalizer = has_prefix ? fmt::format(R"({{"type":"Sequence","normalizers":[{{"type":"Prepend","prepend":"{}"}},{}]}})", kSpacePiece, kSpacesToMarks)
                                              : std::string(kSpacesToMarks);
    const std::string unknown_text = unknown() ? json_string(texts_[*unknown()]) : "null";
    const std::string options = fmt::format(R"("unk_token":{},"fuse_unk":{},"byte_fallback":{},"ignore_merges":false)", unknown_text, fuses, has_bytes());
    return whole(normalizer, "null", post_processor("null"), marks_decoder(has_prefix), bpe_model(options, merges));
  }

  // Returns SentencePiece's unigram model. Its pieces may reach over spaces, so the whole text is one word.
  [[nodiscard]] std::string unigram() const {
    std::string steps;
    const auto add_step = [&](std::string_view step) { steps.append(steps.empty() ? "" : ",").append(step); };
    if (const auto map = settings_.list(Setting::charsmap)) {
      const auto bytes = map->bytes();
      add_step(fmt::format(R"({{"type":"Precompiled","precompiled_charsmap":"{}"}})", base64_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()})));
    }
    if (settings_.boolean_or(Setting::remove_extra_spaces, false).value_or(false)) {
      add_step(R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "})");
      add_step(R"({"type":"Strip","strip_left":true,"strip_right":true})");
    }
    const bool has_prefix = tokenizer_.adds_space_prefix();
    if (has_prefix) add_step(fmt::format(R"({{"type":"Prepend","prepend":"{}"}})", kSpacePiece));
    add_step(kSpacesToMarks);
    const std::string normalizer = fmt::format(R"({{"type":"Sequence","normalizers":[{}]}})", steps);
    std::string model = fmt::format(R"({{"type":"Unigram","unk_id":{},"byte_fallback":{},"vocab":[)", unknown() ? std::to_string(*unknown()) : "null", has_bytes());
    const auto scores = settings_.list(Setting::token_scores);
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      model += id == 0 ? "[" : ",[";
      append_json_string(model, texts_[id]);
      model += fmt::format(",{}]", json_number(scores && id < scores->size() ? scores->number(id) : 0.0));
    }
    return whole(normalizer, "null", post_processor("null"), marks_decoder(has_prefix), model + "]}");
  }

  const Settings& settings_;
  const Tokenizer& tokenizer_;
  const std::stop_token& stop_;
  std::vector<std::string> texts_;
  std::vector<TokenType> types_;
  std::vector<bool> is_left_out_;
  std::unordered_map<std::string, std::size_t> ids_;
};

}  // namespace

Result<std::string> tokenizer_as_json(const Settings& settings, const Tokenizer& tokenizer, const std::stop_token& stop) {
  return TokenizerJsonWriter(settings, tokenizer, stop).run();
}

}  // namespace tessera::detail
