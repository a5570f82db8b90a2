#include <tessera/unstable/text/list_tokenizer.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/text/tokenizer.hpp>

#include "core/error.hpp"
#include "text/pre_tokenizer/pre_tokenizer_patterns.hpp"
#include "text/rules/base64.hpp"
#include "text/rules/json/tokenizer_json.hpp"
#include "text/rules/same_tokens.hpp"
#include "text/rules/sentencepiece.hpp"

namespace tessera {

namespace {

// Settings that have the tokenizer as lists. All other settings come from another Settings object.
class ListedTokenizer final : public Settings {
 public:
  explicit ListedTokenizer(const Settings& others) : others_(others) {}

  std::vector<std::string> tokens, merges;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::string model, pre, charsmap;
  std::optional<std::uint32_t> unknown, bos, eos;
  bool add_bos = false, add_eos = false;
  std::optional<bool> add_space_prefix, remove_extra_spaces;

  [[nodiscard]] std::optional<SettingValue> find(Setting setting) const noexcept override {
    const auto list = [](const auto& values) { return values.empty() ? std::nullopt : std::optional<SettingValue>(ValueList(std::span(values))); };
    const auto flag = [](const std::optional<bool>& value) { return value ? std::optional<SettingValue>(*value) : std::nullopt; };
    const auto id = [](const std::optional<std::uint32_t>& value) { return value ? std::optional<SettingValue>(std::uint64_t{*value}) : std::nullopt; };
    switch (setting) {
      case Setting::tokenizer_json:
      case Setting::sentencepiece_model: return std::nullopt;
      case Setting::tokens: return list(tokens);
      case Setting::merges: return list(merges);
      case Setting::token_types: return list(types);
      case Setting::token_scores: return list(scores);
      case Setting::tokenizer_model: return std::string_view(model);
      case Setting::pre_tokenizer: return pre.empty() ? std::nullopt : std::optional<SettingValue>(std::string_view(pre));
      case Setting::charsmap:
        return charsmap.empty() ? std::nullopt : std::optional<SettingValue>(ValueList(ValueType::u8, charsmap.size(), std::as_bytes(std::span(charsmap))));
      case Setting::unknown_token: return id(unknown);
      case Setting::bos_token: return id(bos);
      case Setting::eos_token: return id(eos);
      case Setting::add_bos: return add_bos;
      case Setting::add_eos: return add_eos;
      case Setting::add_space_prefix: return flag(add_space_prefix);
      case Setting::remove_extra_spaces: return flag(remove_extra_spaces);
      default: return others_.find(setting);
    }
  }
  [[nodiscard]] std::string called(Setting setting) const override { return others_.called(setting); }
  [[nodiscard]] std::string origin() const override { return others_.origin(); }
  [[nodiscard]] Status status() const noexcept override { return others_.status(); }
  [[nodiscard]] std::optional<std::string_view> chat_template(std::string_view name) const noexcept override { return others_.chat_template(name); }

 private:
  const Settings& others_;
};

// Settings that have a SentencePiece file's tokenizer as lists. Owns the model in which the lists lie.
class ListedPieces final : public Settings {
 public:
  ListedPieces(detail::SentencePieceModel model, const Settings& others) : model_(std::move(model)), view_(model_, others) {}
  [[nodiscard]] std::optional<SettingValue> find(Setting setting) const noexcept override { return view_.find(setting); }
  [[nodiscard]] std::string called(Setting setting) const override { return view_.called(setting); }
  [[nodiscard]] std::string origin() const override { return view_.origin(); }
  [[nodiscard]] Status status() const noexcept override { return view_.status(); }

 private:
  detail::SentencePieceModel model_;
  detail::SentencePieceModel::View view_;
};

// Returns whether a rule, or one of the rules nested in it, has this type.
bool has_type(const Json& rule, std::string_view type) {
  const Json* own = rule.find("type");
  if (own != nullptr && own->string() != nullptr && *own->string() == type) return true;
  for (const std::string_view key : {"normalizers", "pretokenizers"}) {
    const Json* inner = rule.find(key);
    if (inner == nullptr || inner->elements() == nullptr) continue;
    if (std::ranges::any_of(*inner->elements(), [&](const Json& one) { return has_type(one, type); })) return true;
  }
  return false;
}

// Returns the charsmap of a normaliser, or of a normaliser nested in it; empty if there is none.
std::string charsmap_of(const Json& rule) {
  const Json* map = rule.find("precompiled_charsmap");
  if (map != nullptr && map->string() != nullptr) return detail::base64_bytes(*map->string()).value_or(std::string());
  const Json* inner = rule.find("normalizers");
  if (inner == nullptr || inner->elements() == nullptr) return {};
  for (const Json& one : *inner->elements()) {
    std::string found = charsmap_of(one);
    if (!found.empty()) return found;
  }
  return {};
}

// Finds the settings of GGUF under which the lists make the tokenizer of a tokenizer.json.
class Lister {
 public:
  Lister(const Settings& settings, const std::stop_token& stop) : settings_(settings), stop_(stop), listed_(std::make_shared<ListedTokenizer>(settings)) {}

  Result<std::shared_ptr<const Settings>> run() {
    TESSERA_TRY(const std::string_view text, settings_.string(Setting::tokenizer_json));
    TESSERA_TRY(json_, detail::read_tokenizer_json(text, stop_));
    TESSERA_TRY(tokenizer_, Tokenizer::from_settings(settings_, stop_));
    list_tokens();
    using enum detail::WordModel;
    bool found = false;
    if (json_.model.type == bpe && has_type(json_.pre_tokenizer, "ByteLevel")) found = find_byte_level();
    else if (json_.model.type == bpe) found = find_characters();
    else if (json_.model.type == unigram) found = find_unigram();
    else if (json_.model.type == word_piece) found = find_word_pieces();
    if (stop_.stop_requested()) return detail::make_error(ErrorCode::cancelled, "listing the tokenizer was cancelled");
    if (found) return std::shared_ptr<const Settings>(listed_);
    return detail::error_at(ErrorCode::unsupported, settings_.place(Setting::tokenizer_json),
                            "GGUF has no name for the steps of this tokenizer: a GGUF file cannot have it. tessera runs the model from its folder");
  }

 private:
  void list_tokens() {
    for (const std::string_view text : json_.tokens.values().strings()) listed_->tokens.emplace_back(text);
    listed_->types = json_.types;
    // Rows of the embedding table without a token get names, as converters write them.
    const auto rows = settings_.unsigned_integer_or(Setting::vocab_size, 0).value_or(0);
    for (std::size_t i = 0; i < listed_->tokens.size(); ++i) {
      if (listed_->tokens[i].empty()) name_unused(i);
    }
    for (std::size_t i = listed_->tokens.size(); i < std::min<std::uint64_t>(rows, std::uint64_t{1} << 24); ++i) {
      listed_->tokens.emplace_back();
      listed_->types.push_back(0);
      name_unused(i);
    }
    if (json_.unknown < listed_->tokens.size()) listed_->unknown = json_.unknown;
    if (const auto bos = tokenizer_.bos()) listed_->bos = static_cast<std::uint32_t>(*bos);
    if (const auto eos = tokenizer_.eos()) listed_->eos = static_cast<std::uint32_t>(*eos);
    listed_->add_bos = tokenizer_.adds_bos();
    listed_->add_eos = tokenizer_.adds_eos();
    std::string_view left;
    bool is_left = true;
    for (const std::string_view text : json_.merges.values().strings()) {
      if (is_left) left = text;
      else listed_->merges.push_back(std::string(left).append(" ").append(text));
      is_left = !is_left;
    }
  }
  void name_unused(std::size_t id) {
    listed_->tokens[id] = fmt::format("[PAD{}]", id);
    listed_->types[id] = static_cast<std::int32_t>(TokenType::unused);
  }

  // Returns whether the lists as they are now make the same tokenizer.
  [[nodiscard]] bool is_same() const {
    const auto other = Tokenizer::from_settings(*listed_, stop_);
    return other && detail::give_same_tokens(tokenizer_, *other);
  }

  bool find_byte_level() {
    listed_->model = "gpt2";
    std::vector<const detail::PreTokenizerSpec*> tried;
    const std::string names = detail::known_pre_tokenizers();
    for (std::size_t at = 0; at < names.size() && !stop_.stop_requested();) {
      const std::size_t end = std::min(names.find(", ", at), names.size());
      const detail::PreTokenizerSpec* spec = detail::find_pre_tokenizer(std::string_view(names).substr(at, end - at));
      at = end + 2;
      if (spec == nullptr || spec->name == "default") continue;
      const bool is_known = std::ranges::any_of(tried, [&](const detail::PreTokenizerSpec* other) {
        return other->patterns.data() == spec->patterns.data() && other->ignore_merges == spec->ignore_merges && other->nfc == spec->nfc;
      });
      if (is_known) continue;
      tried.push_back(spec);
      listed_->pre = spec->name;
      if (is_same()) return true;
    }
    return false;
  }

  // Tries GGUF's tokenizers that do BPE on characters, and spell unknown characters as bytes: first "gemma4", which has a list of merges,
  // then "llama", in which the tokens' scores are the ranks of the merges. Returns whether the lists then make the same tokenizer as the
  // tokenizer.json.
  bool find_characters() {
    listed_->model = "gemma4";
    listed_->add_space_prefix = false;
    if (is_same()) return true;
    std::vector<std::string> merges = std::move(listed_->merges);
    listed_->merges.clear();
    std::unordered_map<std::string, std::size_t> ids;
    for (std::size_t i = 0; i < listed_->tokens.size(); ++i) ids.emplace(listed_->tokens[i], i);
    listed_->scores.assign(listed_->tokens.size(), 0.0f);
    std::vector<bool> has_score(listed_->tokens.size());
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      std::string whole = merges[rank];
      whole.erase(whole.find(' '), 1);
      const auto at = ids.find(whole);
      if (at == ids.end() || has_score[at->second]) continue;
      has_score[at->second] = true;
      listed_->scores[at->second] = -static_cast<float>(rank);
    }
    listed_->model = "llama";
    for (const bool prefix : {true, false}) {
      listed_->add_space_prefix = prefix;
      if (is_same()) return true;
    }
    return false;
  }

  bool find_unigram() {
    listed_->model = "t5";
    listed_->scores.assign(json_.scores.begin(), json_.scores.end());
    listed_->scores.resize(listed_->tokens.size(), 0.0f);
    listed_->charsmap = charsmap_of(json_.normalizer);
    for (const bool prefix : {true, false}) {
      for (const bool remove : {true, false}) {
        listed_->add_space_prefix = prefix;
        listed_->remove_extra_spaces = remove;
        if (is_same()) return true;
      }
    }
    return false;
  }

  // Tries GGUF's tokenizer of BERT. In GGUF a piece that begins a word is marked (U+2581); in a tokenizer.json a piece that continues a
  // word is marked ("##"). So the marks are exchanged. Returns whether the lists then make the same tokenizer as the tokenizer.json.
  bool find_word_pieces() {
    listed_->model = "bert";
    for (std::string& piece : listed_->tokens) {
      if (piece.starts_with('[') && piece.ends_with(']')) continue;
      if (piece.starts_with("##")) piece.erase(0, 2);
      else piece.insert(0, "\xE2\x96\x81");
    }
    return is_same();
  }

  const Settings& settings_;
  const std::stop_token& stop_;
  std::shared_ptr<ListedTokenizer> listed_;
  detail::TokenizerJson json_;
  Tokenizer tokenizer_;
};

}  // namespace

Result<std::shared_ptr<const Settings>> list_tokenizer(const Settings& settings, const std::stop_token& stop) noexcept {
  return detail::guard([&]() -> Result<std::shared_ptr<const Settings>> {
    if (settings.has(Setting::tokenizer_json)) return Lister(settings, stop).run();
    if (settings.has(Setting::sentencepiece_model)) {
      TESSERA_TRY(const std::string_view bytes, settings.string(Setting::sentencepiece_model));
      TESSERA_TRY(detail::SentencePieceModel model, detail::SentencePieceModel::read(bytes, stop));
      return std::shared_ptr<const Settings>(std::make_shared<const ListedPieces>(std::move(model), settings));
    }
    return std::shared_ptr<const Settings>(std::shared_ptr<const Settings>(), &settings);
  });
}

}  // namespace tessera
