// --json: one object on standard output, with the figures.
#include <nlohmann/json.hpp>

#include "kv_types.hpp"
#include "option_words.hpp"
#include "output/output.hpp"
#include "output/terminal.hpp"

using Object = nlohmann::ordered_json;
using tessera::Piece;
using tessera::Token;
using tessera::Tokenizer;

namespace {

// Returns the object as a text. Bytes that are not UTF-8 (a piece may be part of a character) become U+FFFD.
std::string dump(const Object& json) { return json.dump(-1, ' ', false, Object::error_handler_t::replace); }

Object adapters_json(std::span<const tessera::AdapterUse> adapters);

class JsonOutput final : public Output {
 public:
  JsonOutput(const Options& options, const Tokenizer& tokenizer)
      : wants_logprobs_(options.logprobs > 0), tokenizer_(tokenizer) {}

  void begin(const std::string&, std::span<const Token> tokens) override { prompt_tokens_ = tokens; }

  void piece(const Piece& piece) override {
    text_ += piece.text;
    if (piece.token < 0) return;
    tokens_.push_back(piece.token);
    if (wants_logprobs_) logprobs_.push_back(logprob_json(piece));
  }

  void end(const Outcome& outcome) override {
    const tessera::Figures& f = outcome.figures;
    Object json;
    json["prompt_tokens"] = prompt_tokens_;
    json["tokens"] = std::move(tokens_);
    json["text"] = text_;
    json["finish_reason"] = tessera::to_string(outcome.finish);
    if (outcome.error) json["error"] = in_options(outcome.error->text());
    if (outcome.seed) json["seed"] = *outcome.seed;
    if (wants_logprobs_) json["logprobs"] = std::move(logprobs_);
    if (!outcome.adapters.empty()) json["adapters"] = adapters_json(outcome.adapters);
    json["figures"] = {{"prompt_tokens", f.prompt_tokens},
                       {"tokens", f.tokens},
                       {"prompt_seconds", f.prompt_seconds},
                       {"time_to_first_token", f.time_to_first_token},
                       {"generation_seconds", f.generation_seconds},
                       {"tokens_per_second", f.tokens_per_second},
                       {"bytes_per_token", f.bytes_per_token},
                       {"steps", f.steps},
                       {"drafted", f.drafted},
                       {"accepted", f.accepted},
                       {"exited", f.exited},
                       {"exit_tries", f.exit_tries},
                       {"layers_saved", f.layers_saved}};
    print(dump(json) + "\n");
  }

 private:
  [[nodiscard]] Object token_json(Token token, float logprob) const {
    return {{"token", token}, {"text", tokenizer_.piece(token)}, {"logprob", logprob}};
  }

  [[nodiscard]] Object logprob_json(const Piece& piece) const {
    Object json = token_json(piece.token, piece.logprob);
    json["top"] = Object::array();
    for (const tessera::TokenLogprob& top : piece.top) json["top"].push_back(token_json(top.token, top.logprob));
    return json;
  }

  bool wants_logprobs_;
  Tokenizer tokenizer_;
  std::vector<Token> tokens_;
  std::span<const Token> prompt_tokens_;
  std::string text_;
  Object logprobs_ = Object::array();
};

Object adapters_json(std::span<const tessera::AdapterUse> adapters) {
  Object list = Object::array();
  for (const tessera::AdapterUse& use : adapters) {
    Object one{{"name", use.adapter.name()}, {"base_name", use.adapter.base_name()}, {"scale", use.scale}, {"rank", use.adapter.rank()},
               {"matrices", use.adapter.matrices()}, {"bytes", use.adapter.bytes()}};
    if (!use.adapter.invocation().empty()) one["invocation"] = use.adapter.invocation();
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

std::unique_ptr<Output> make_json_output(const Options& options, const Tokenizer& tokenizer) {
  return std::make_unique<JsonOutput>(options, tokenizer);
}

std::string quoted(std::string_view text) { return dump(Object(text)); }

std::string tokens_json(std::span<const Token> tokens) { return dump({{"tokens", tokens}}) + "\n"; }

std::string text_json(const std::string& text) { return dump({{"text", text}}) + "\n"; }

std::string plan_json(const std::string& model, const tessera::Plan& plan) {
  return dump({{"model", model},
               {"context", plan.context},
               {"kv_dtype", tessera::to_string(plan.kv_dtype)},
               {"kv_wide", tessera::tool::wide_json<Object>(plan.kv_wide)},
               {"weights", plan.weights},
               {"kv", plan.kv},
               {"kv_per_token", plan.kv_per_token},
               {"workspace", plan.workspace},
               {"host", plan.host},
               {"loading", plan.loading},
               {"peak", plan.peak},
               {"device_peak", plan.device_peak},
               {"weights_per_token", plan.weights_per_token}}) +
         "\n";
}

std::string explain_json(const std::string& model, std::string_view numerics, std::span<const tessera::KernelUse> uses,
                         std::span<const tessera::AdapterUse> adapters) {
  Object operations = Object::array();
  for (const tessera::KernelUse& use : uses) {
    operations.push_back({{"kind", to_string(use.kind)},
                          {"operation", use.operation},
                          {"kernel", use.kernel},
                          {"family", use.family},
                          {"dtype", use.dtype},
                          {"backend", use.backend}});
  }
  Object json{{"model", model}, {"numerics", numerics}, {"operations", operations}};
  if (!adapters.empty()) json["adapters"] = adapters_json(adapters);
  return dump(json) + "\n";
}
