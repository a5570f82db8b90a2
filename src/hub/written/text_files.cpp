#include "hub/written/text_files.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "json/spelling.hpp"
#include "text/rules/written_json.hpp"

namespace tessera::detail::hub {

namespace {

void append_lines(std::string& out, const Json& json, std::size_t depth) {
  const auto new_line = [&](std::size_t indent) { out.append("\n").append(2 * indent, ' '); };
  if (json.members() != nullptr && !json.members()->empty()) {
    out += '{';
    for (const auto& [key, value] : *json.members()) {
      if (out.back() != '{') out += ',';
      new_line(depth + 1);
      append_json_string(out, key);
      out += ": ";
      append_lines(out, value, depth + 1);
    }
    new_line(depth);
    out += '}';
  } else if (json.elements() != nullptr && !json.elements()->empty() && json.elements()->front().members() != nullptr) {
    out += '[';
    for (const Json& value : *json.elements()) {
      if (out.back() != '[') out += ',';
      new_line(depth + 1);
      append_lines(out, value, depth + 1);
    }
    new_line(depth);
    out += ']';
  } else {
    out += json.dump();
  }
}

// Collects the files.
class TextFiles {
 public:
  TextFiles(const Settings& settings, Json& config, const std::stop_token& stop) : settings_(settings), config_(config), stop_(stop) {}

  Result<std::vector<TextFile>> run() {
    TESSERA_TRY_STATUS(add_tokenizer());
    // Missing keys are set to null. Otherwise transformers' class would use its default ids, which the vocabulary may not have.
    for (const std::string_view key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
      if (config_.find(key) == nullptr) config_.set(key, Json());
    }
    add_generation();
    add_template();
    add_embedding();
    return std::move(files_);
  }

 private:
  void add(std::string name, const Json& json) { files_.push_back({std::move(name), in_lines(json)}); }

  [[nodiscard]] bool has_tokenizer() const {
    if (settings_.has(Setting::tokenizer_json) || settings_.has(Setting::sentencepiece_model)) return true;
    const auto model = settings_.string_or(Setting::tokenizer_model, "none");
    return model && *model != "none" && *model != "no_vocab";
  }

  Status add_tokenizer() {
    if (!has_tokenizer()) {
      copy_ids();
      return {};
    }
    TESSERA_TRY(tokenizer_, Tokenizer::from_settings(settings_, stop_));
    if (settings_.has(Setting::tokenizer_json)) {
      TESSERA_TRY(const std::string_view text, settings_.string(Setting::tokenizer_json));
      files_.push_back({"tokenizer.json", std::string(text)});
    } else if (settings_.has(Setting::sentencepiece_model)) {
      TESSERA_TRY(const std::string_view bytes, settings_.string(Setting::sentencepiece_model));
      files_.push_back({"tokenizer.model", std::string(bytes)});
    } else {
      TESSERA_TRY(std::string text, tokenizer_as_json(settings_, tokenizer_, stop_));
      files_.push_back({"tokenizer.json", std::move(text)});
    }
    Json config = Json::object();
    config.set("tokenizer_class", "PreTrainedTokenizerFast");
    config.set("clean_up_tokenization_spaces", false);
    if (const auto context = settings_.unsigned_integer(Setting::context)) config.set("model_max_length", static_cast<std::int64_t>(*context));
    if (tokenizer_.bos() || settings_.has(Setting::add_bos)) config.set("add_bos_token", tokenizer_.adds_bos());
    if (tokenizer_.eos() || settings_.has(Setting::add_eos)) config.set("add_eos_token", tokenizer_.adds_eos());
    Json added = Json::object();
    const auto name = [&](std::string_view key, std::string_view id_key, std::optional<Token> token) {
      if (!token || *token < 0 || static_cast<std::size_t>(*token) >= tokenizer_.vocab_size()) return;
      const std::string text(tokenizer_.text(*token));
      config.set(key, text);
      Json entry = Json::object();
      entry.set("content", text);
      for (const std::string_view flag : {"lstrip", "normalized", "rstrip", "single_word"}) entry.set(flag, false);
      entry.set("special", true);
      added.set(std::to_string(*token), std::move(entry));
      if (!id_key.empty()) config_.set(id_key, static_cast<std::int64_t>(*token));
    };
    name("bos_token", "bos_token_id", tokenizer_.bos());
    name("eos_token", "eos_token_id", tokenizer_.eos());
    name("pad_token", "pad_token_id", id_of(Setting::padding_token));
    name("unk_token", "", id_of(Setting::unknown_token));
    config.set("added_tokens_decoder", std::move(added));
    add("tokenizer_config.json", config);
    return {};
  }

  [[nodiscard]] std::optional<Token> id_of(Setting setting) const {
    const auto id = settings_.unsigned_integer(setting);
    if (!id || *id > 0x7FFFFFFF) return std::nullopt;
    return static_cast<Token>(*id);
  }

  // Copies the ids of special tokens, for models without a tokenizer.
  void copy_ids() {
    for (const auto& [setting, key] : {std::pair{Setting::bos_token, "bos_token_id"}, std::pair{Setting::eos_token, "eos_token_id"},
                                       std::pair{Setting::padding_token, "pad_token_id"}}) {
      if (const auto id = id_of(setting)) config_.set(key, static_cast<std::int64_t>(*id));
    }
  }

  void add_generation() {
    Json generation = Json::object();
    const auto copy = [&](std::string_view key, Setting setting) {
      const auto value = settings_.find(setting);
      if (!value) return;
      if (const auto* whole = std::get_if<std::int64_t>(&*value)) generation.set(key, *whole);
      else if (const auto* count = std::get_if<std::uint64_t>(&*value)) generation.set(key, static_cast<std::int64_t>(*count));
      else if (const auto* number = std::get_if<double>(&*value)) generation.set(key, *number == static_cast<double>(static_cast<float>(*number)) ? *Json::parse(fmt::format("{}", static_cast<float>(*number))) : Json(*number));
    };
    if (const Json* bos = find_in(&config_, "bos_token_id")) generation.set("bos_token_id", *bos);
    Json ends = Json::array();
    const auto add_end = [&](Token token) { ends.elements()->emplace_back(static_cast<std::int64_t>(token)); };
    const auto eos = tokenizer_.vocab_size() != 0 ? tokenizer_.eos() : id_of(Setting::eos_token);
    if (eos) add_end(*eos);
    for (std::size_t id = 0; id < tokenizer_.vocab_size(); ++id) {
      const auto token = static_cast<Token>(id);
      if (tokenizer_.is_end_of_generation(token) && token != eos) add_end(token);
    }
    if (ends.elements()->size() == 1) generation.set("eos_token_id", ends.elements()->front());
    else if (!ends.elements()->empty()) generation.set("eos_token_id", std::move(ends));
    if (const Json* padding = find_in(&config_, "pad_token_id")) generation.set("pad_token_id", *padding);
    copy("temperature", Setting::sampling_temperature);
    copy("top_k", Setting::sampling_top_k);
    copy("top_p", Setting::sampling_top_p);
    copy("min_p", Setting::sampling_min_p);
    if (generation.find("temperature") != nullptr || generation.find("top_k") != nullptr || generation.find("top_p") != nullptr) {
      generation.set("do_sample", true);
    }
    add("generation_config.json", generation);
  }

  void add_template() {
    const auto text = settings_.string(Setting::chat_template);
    if (text && !text->empty()) files_.push_back({"chat_template.jinja", std::string(*text)});
  }

  // Adds the files of sentence-transformers, for models that compute embeddings.
  void add_embedding() {
    constexpr std::string_view kModes[] = {"", "mean", "cls", "lasttoken"};
    constexpr std::string_view kFlags[] = {"", "pooling_mode_mean_tokens", "pooling_mode_cls_token", "pooling_mode_lasttoken"};
    const std::uint64_t pooling = settings_.unsigned_integer_or(Setting::pooling, 0).value_or(0);
    if (pooling == 0 || pooling >= std::size(kModes)) return;
    Json modules = Json::array();
    const auto module = [&](std::string_view path, std::string_view type) {
      Json entry = Json::object();
      const auto index = static_cast<std::int64_t>(modules.elements()->size());
      entry.set("idx", index);
      entry.set("name", std::to_string(index));
      entry.set("path", path);
      entry.set("type", fmt::format("sentence_transformers.models.{}", type));
      modules.elements()->push_back(std::move(entry));
    };
    module("", "Transformer");
    module("1_Pooling", "Pooling");
    module("2_Normalize", "Normalize");
    add("modules.json", modules);
    Json own = Json::object();
    if (const auto width = settings_.unsigned_integer(Setting::d_model)) own.set("word_embedding_dimension", static_cast<std::int64_t>(*width));
    for (std::size_t i = 1; i < std::size(kFlags); ++i) own.set(kFlags[i], i == pooling);
    own.set("pooling_mode_max_tokens", false);
    own.set("pooling_mode_mean_sqrt_len_tokens", false);
    add("1_Pooling/config.json", own);
    Json sentence = Json::object();
    if (const auto most = settings_.unsigned_integer(Setting::text_tokens)) sentence.set("max_seq_length", static_cast<std::int64_t>(*most));
    sentence.set("do_lower_case", false);
    add("sentence_bert_config.json", sentence);
    Json prompts = Json::object();
    for (const auto& [setting, key] : {std::pair{Setting::query_prompt, "query"}, std::pair{Setting::document_prompt, "document"}}) {
      if (const auto text = settings_.string(setting)) prompts.set(key, *text);
    }
    Json sentences = Json::object();
    sentences.set("prompts", std::move(prompts));
    add("config_sentence_transformers.json", sentences);
  }

  const Settings& settings_;
  Json& config_;
  const std::stop_token& stop_;
  Tokenizer tokenizer_;
  std::vector<TextFile> files_;
};

}  // namespace

Result<std::vector<TextFile>> text_files(const Settings& settings, Json& config, const std::stop_token& stop) {
  return TextFiles(settings, config, stop).run();
}

std::string in_lines(const Json& json) {
  std::string out;
  append_lines(out, json, 0);
  return out += '\n';
}

}  // namespace tessera::detail::hub
