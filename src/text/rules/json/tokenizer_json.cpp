#include "text/rules/json/tokenizer_json.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "json/pull_reader.hpp"
#include "text/models/piece_order.hpp"
#include "text/rules/json/model_reader.hpp"
#include "text/rules/json/rule_reader.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kLongestRule = std::size_t{1} << 20;          // in bytes; the longest known one is a charsmap of 320 KB
constexpr std::size_t kMostAddedBytes = std::size_t{2} << 20;       // texts of added tokens: their automaton takes 21 bytes for each
constexpr std::size_t kMostAdded = std::size_t{1} << 18;
constexpr std::uint64_t kFreeIds = 65'536;  // ids may have this many holes, and as many again as there are tokens

class FileReader {
 public:
  FileReader(std::string_view text, const std::stop_token& stop) : json_(text), stop_(stop), model_(json_, stop) {}

  Result<TokenizerJson> run() {
    TESSERA_TRY_STATUS(read_members());
    TESSERA_TRY_STATUS(number_tokens());
    return std::move(made_);
  }

 private:
  Status read_members() {
    const auto named = [](std::string_view place, Status status) -> Status {
      return status ? std::move(status) : json_error_at(place, status.error());
    };
    TESSERA_TRY_STATUS(named("the file", json_.begin_object()));
    bool has_model = false;
    for (std::string key;;) {
      Result<bool> more = json_.next_key(key);
      if (!more) return json_error_at("the file", more.error());
      if (!*more) break;
      const std::pair<std::string_view, Json*> rules[] = {{"normalizer", &made_.normalizer},
                                                          {"pre_tokenizer", &made_.pre_tokenizer},
                                                          {"post_processor", &made_.post_processor},
                                                          {"decoder", &made_.decoder}};
      const auto* rule = std::ranges::find(rules, std::string_view(key), &std::pair<std::string_view, Json*>::first);
      if (rule != std::end(rules)) {
        TESSERA_TRY_STATUS(named(key, read_rule(*rule->second)));
      } else if (key == "model") {
        if (std::exchange(has_model, true)) return json_error_at("model", json_.error("stands twice"));
        TESSERA_TRY_STATUS(model_.read());
      } else if (key == "added_tokens") {
        TESSERA_TRY_STATUS(named(key, read_added()));
      } else if (key == "version" || key == "truncation" || key == "padding") {
        TESSERA_TRY_STATUS(named(key, json_.skip()));
      } else {
        return error_at(ErrorCode::unsupported, "tokenizer.json", "the key \"{}\" is not known", printable(key));
      }
    }
    TESSERA_TRY_STATUS(named("the file", json_.end()));
    if (!has_model) return error_at(ErrorCode::corrupt_file, "tokenizer.json: model", "is missing: it has the vocabulary");
    return {};
  }

  Status read_rule(Json& out) {
    TESSERA_TRY(const std::string_view written, json_.skipped());
    if (written.size() > kLongestRule) {
      return make_error(ErrorCode::unsupported, "has {} bytes of JSON; at most {} are read", written.size(), kLongestRule);
    }
    Result<Json> parsed = Json::parse(written);
    if (!parsed) return parsed.error().code() == ErrorCode::out_of_memory ? parsed.error() : json_.error(parsed.error().message());
    out = *std::move(parsed);
    return {};
  }

  Status read_added() {
    TESSERA_TRY_STATUS(json_.begin_array());
    for (std::string key;;) {
      if (stop_.stop_requested()) return loading_stopped();
      TESSERA_TRY(const bool more, json_.next_element());
      if (!more) return {};
      TESSERA_TRY_STATUS(json_.begin_object());
      AddedToken token;
      std::int64_t id = -1;
      for (;;) {
        TESSERA_TRY(const bool has_key, json_.next_key(key));
        if (!has_key) break;
        bool ignored = false;
        bool* const flag = key == "special"       ? &token.special
                           : key == "lstrip"      ? &token.left_strip
                           : key == "rstrip"      ? &token.right_strip
                           : key == "single_word" ? &token.single_word
                           : key == "normalized"  ? &token.normalized
                                                  : &ignored;
        if (key == "id") {
          TESSERA_TRY(id, json_.integer());
        } else if (key == "content") {
          TESSERA_TRY_STATUS(json_.string(token.text));
        } else if (flag != &ignored) {
          TESSERA_TRY(*flag, json_.boolean());
        } else {
          TESSERA_TRY_STATUS(json_.skip());
        }
      }
      if (id < 0 || id > std::numeric_limits<std::int32_t>::max() / 2) {
        return json_.error(fmt::format("token {} has the id {}: ids are not negative and have 30 bits", made_.added.size(), id));
      }
      token.id = static_cast<std::uint32_t>(id);
      added_bytes_ += token.text.size();
      if (made_.added.size() == kMostAdded || added_bytes_ > kMostAddedBytes) {
        return make_error(ErrorCode::unsupported, "more than {} added tokens, or {} bytes of their texts", kMostAdded, kMostAddedBytes);
      }
      if (!token.text.empty()) made_.added.push_back(std::move(token));
    }
  }

  [[nodiscard]] static Error twice(std::uint32_t id, std::string_view a, std::string_view b) {
    return error_at(ErrorCode::corrupt_file, "tokenizer.json: model.vocab", "the id {} stands for \"{}\" and for \"{}\"", id, printable(a), printable(b));
  }

  // Gives each token id its text and its type. The ids come from the vocabulary and from the list of added tokens. If the vocabulary has
  // the text of an added token, the added token gets the vocabulary's id, whatever id its own entry has, as in the crate `tokenizers`.
  Status number_tokens() {
    std::unordered_map<std::string_view, std::uint32_t> added;  // text: index in made_.added
    added.reserve(made_.added.size());
    for (std::uint32_t i = 0; i < made_.added.size(); ++i) added.emplace(made_.added[i].text, i);
    std::vector<bool> in_model(made_.added.size());
    std::uint64_t count = model_.entries.size() + made_.added.size(), highest = 0;
    for (const ModelReader::Entry& entry : model_.entries) {
      highest = std::max<std::uint64_t>(highest, entry.id);
      if (added.empty()) continue;
      const auto found = added.find(model_.text(entry));
      if (found == added.end()) continue;
      in_model[found->second] = true;
      made_.added[found->second].id = entry.id;
    }
    for (const AddedToken& token : made_.added) highest = std::max<std::uint64_t>(highest, token.id);
    if (count == 0) return error_at(ErrorCode::corrupt_file, "tokenizer.json: model.vocab", "has no token");
    if (highest > 2 * count + kFreeIds) {
      return error_at(ErrorCode::corrupt_file, "tokenizer.json: model.vocab", "the highest token id is {}, but there are {} tokens only", highest, count);
    }

    std::vector<std::string_view> texts(static_cast<std::size_t>(highest) + 1);
    std::vector<bool> taken(texts.size());
    std::size_t bytes = 0;
    for (const ModelReader::Entry& entry : model_.entries) {
      const std::string_view text = model_.text(entry);
      if (taken[entry.id]) return twice(entry.id, texts[entry.id], text);
      taken[entry.id] = true;
      texts[entry.id] = text;
      bytes += text.size();
    }
    for (std::uint32_t i = 0; i < made_.added.size(); ++i) {
      const AddedToken& token = made_.added[i];
      if (in_model[i] || added.find(token.text)->second != i) continue;
      if (taken[token.id]) return twice(token.id, texts[token.id], token.text);
      taken[token.id] = true;
      texts[token.id] = token.text;
      bytes += token.text.size();
      made_.outside.push_back(token.id);
    }
    const bool compares = model_.rules.type == WordModel::unigram || model_.rules.type == WordModel::word_piece;
    for (const ModelReader::Entry& entry : model_.entries) {
      if (!compares || entry.size <= PieceOrder::kLongestPiece) continue;
      return error_at(ErrorCode::unsupported, "tokenizer.json: model.vocab", "token {} has {} bytes; tokens of this model have at most {}",
                      entry.id, entry.size, PieceOrder::kLongestPiece);
    }
    set_types(texts, taken);
    made_.tokens.reserve(texts.size(), bytes);
    for (const std::string_view text : texts) made_.tokens.add(text);
    if (model_.rules.type == WordModel::unigram) {
      made_.scores = std::move(model_.scores);
      made_.scores.resize(texts.size());
      made_.least_score = model_.entries.empty() ? 0 : model_.least_score;
    }
    made_.model = std::move(model_.rules);
    made_.merges = std::move(model_.merges);
    made_.options = std::move(model_.options);
    return {};
  }

  void set_types(const std::vector<std::string_view>& texts, const std::vector<bool>& taken) {
    made_.types.resize(texts.size(), static_cast<std::int32_t>(TokenType::unused));
    const auto set = [&](std::size_t id, TokenType type) { made_.types[id] = static_cast<std::int32_t>(type); };
    for (std::size_t id = 0; id < texts.size(); ++id) {
      if (!taken[id]) continue;
      set(id, model_.rules.bpe.byte_fallback && byte_of(texts[id]) ? TokenType::byte : TokenType::normal);
      if (model_.rules.unknown_text && texts[id] == *model_.rules.unknown_text) made_.unknown = static_cast<std::uint32_t>(id);
    }
    if (model_.rules.unknown_id) made_.unknown = static_cast<std::uint32_t>(*model_.rules.unknown_id);
    for (const AddedToken& token : made_.added) set(token.id, token.special ? TokenType::control : TokenType::user_defined);
    if (made_.unknown != kNoToken) set(made_.unknown, TokenType::unknown);
  }

  JsonPullReader json_;
  const std::stop_token& stop_;
  ModelReader model_;
  TokenizerJson made_;
  std::size_t added_bytes_ = 0;
};

}  // namespace

Result<TokenizerJson> read_tokenizer_json(std::string_view text, const std::stop_token& stop) { return FileReader(text, stop).run(); }

}  // namespace tessera::detail
