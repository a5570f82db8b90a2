// POST /v1/completions
#include <algorithm>
#include <functional>
#include <new>
#include <numeric>

#include <fmt/format.h>

#include "answers/stream_progress.hpp"
#include "apis/api.hpp"
#include "apis/fill_in.hpp"
#include "apis/openai.hpp"
#include "apis/prompt_scores.hpp"
#include "fields/chat_fields.hpp"
#include "json_object.hpp"
#include "kv/kv_transfer.hpp"

namespace server {

using tessera::FinishReason;
using tessera::Json;
using tessera::OutputDelta;

namespace {

// Counts the characters of a text in UTF-8.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

struct CompletionShape {
  std::string id, model;
  std::int64_t created;
  bool shows_logprobs;
  std::size_t top;                  // number of likeliest tokens to report with each token
  struct Prompt {
    std::string text;
    std::vector<tessera::Token> tokens{};
    PromptScores scores{};
  };
  std::vector<Prompt> echoes;       // [prompts]: prompts to put in front of the texts; empty without echo
  std::size_t samples = 1;          // choices of a prompt
  std::size_t kept = 1;             // choices of a prompt that are shown: all, or with best_of those with the best mean log-probability

  // Returns the number of characters of the prompt that a choice repeats at its beginning.
  [[nodiscard]] std::size_t echoed(std::size_t choice) const { return echoes.empty() ? 0 : characters(echoes[choice / samples].text); }
  [[nodiscard]] Object object() const {
    return Object().set("id", id).set("object", "text_completion").set("created", created).set("model", model);
  }
};

// Builds {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, token by token.
class Logprobs {
 public:
  // Adds a prompt's tokens. The first token has no log-probability. The offset of a token is the place of its text in the prompt.
  void add_prompt(const tessera::Tokenizer& tokenizer, const CompletionShape::Prompt& prompt, std::size_t top) {
    std::size_t bytes = 0, text = 0;
    for (const tessera::Token token : prompt.tokens) text += characters_of(tokenizer, token);
    const std::size_t ahead = text - std::min(text, characters(prompt.text));  // 1 if the tokenizer puts a blank in front
    for (std::size_t i = 0; i < prompt.tokens.size(); ++i) {
      const bool is_first = i == 0;
      tokens_.emplace_back(shown_token(tokenizer, prompt.tokens[i]));
      logprobs_.push_back(is_first ? Json() : Json(std::max(static_cast<double>(prompt.scores.logprobs.at(i - 1)), -9999.0)));
      top_.push_back(is_first || top == 0 ? Json() : likeliest(tokenizer, prompt.scores.top.at(i - 1), top));
      offsets_.emplace_back(static_cast<std::int64_t>(bytes - std::min(bytes, ahead)));
      bytes += characters_of(tokenizer, prompt.tokens[i]);
    }
  }
  void add(const tessera::Tokenizer& tokenizer, const tessera::Piece& piece, std::size_t top, std::size_t offset) {
    tokens_.emplace_back(shown_token(tokenizer, piece.token));
    logprobs_.emplace_back(std::max(static_cast<double>(piece.logprob), -9999.0));
    top_.push_back(top == 0 ? Json() : likeliest(tokenizer, piece.top, top));
    offsets_.emplace_back(static_cast<std::int64_t>(offset));
  }
  [[nodiscard]] bool empty() const { return tokens_.empty(); }
  [[nodiscard]] Json take() {
    return Object()
        .set("tokens", std::exchange(tokens_, {}))
        .set("token_logprobs", std::exchange(logprobs_, {}))
        .set("top_logprobs", std::exchange(top_, {}))
        .set("text_offset", std::exchange(offsets_, {}));
  }

 private:
  static std::size_t characters_of(const tessera::Tokenizer& tokenizer, tessera::Token token) {
    return tokenizer.is_control(token) ? 0 : characters(tokenizer.piece(token));
  }
  static Json likeliest(const tessera::Tokenizer& tokenizer, const std::vector<tessera::TokenLogprob>& all, std::size_t top) {
    Object object;
    for (std::size_t i = 0; i < top && i < all.size(); ++i) object.set(shown_token(tokenizer, all[i].token), std::max(static_cast<double>(all[i].logprob), -9999.0));
    return object;
  }

  Json::Array tokens_, logprobs_, top_, offsets_;
};

Json one_choice(std::size_t index, std::string text, Json logprobs, Json reason) {
  return Object()
      .set("text", std::move(text))
      .set("index", static_cast<std::int64_t>(index))
      .set("logprobs", std::move(logprobs))
      .set("finish_reason", std::move(reason));
}

class Whole final : public AnswerWriter {
 public:
  Whole(CompletionShape shape, const tessera::Tokenizer& tokenizer, std::size_t choices, HttpReplyPtr reply)
      : shape_(std::move(shape)), tokenizer_(tokenizer), choices_(choices), reply_(std::move(reply)) {
    for (std::size_t i = 0; i < choices && !shape_.echoes.empty(); ++i) {
      const CompletionShape::Prompt& prompt = shape_.echoes[i / shape_.samples];
      choices_[i].text = prompt.text;
      if (shape_.shows_logprobs) choices_[i].logprobs.add_prompt(tokenizer_, prompt, shape_.top);
    }
  }
  void token_at(std::size_t i, const tessera::Piece& piece, std::size_t at) override {
    Choice& c = choices_[i];
    c.sum += piece.logprob;
    ++c.tokens;
    c.logprobs.add(tokenizer_, piece, shape_.top, shape_.echoed(i) + at);
  }
  void add(std::size_t i, const OutputDelta& delta) override { choices_[i].text += delta.text; }
  void finish(std::size_t i, const Finish& finish) override { choices_[i].reason = openai_reason(finish); }
  void kv_transfer(Json params) override { kv_transfer_ = std::move(params); }
  void end(const Usage& usage) override {
    Json::Array list;
    for (const std::size_t i : kept()) {
      Choice& c = choices_[i];
      list.push_back(one_choice(list.size(), std::move(c.text), shape_.shows_logprobs ? c.logprobs.take() : Json(), c.reason));
    }
    Object answer = shape_.object().set("choices", std::move(list)).set("usage", openai_usage(usage)).set("system_fingerprint", "tessera");
    if (!kv_transfer_.is_null()) answer.set("kv_transfer_params", std::move(kv_transfer_));
    reply_->send({.body = std::move(answer).dump()});
  }
  void fail(const ApiError& error) override { reply_->send(to_response(error, ApiKind::openai)); }

 private:
  struct Choice {
    std::string text, reason;
    Logprobs logprobs;
    double sum = 0.0;  // sum of the log-probabilities
    std::size_t tokens = 0;
    [[nodiscard]] double mean() const { return tokens == 0 ? 0.0 : sum / static_cast<double>(tokens); }
  };
  // Returns the choices to show of each prompt. If more were drawn, returns those with the highest mean log-probability, the best first.
  [[nodiscard]] std::vector<std::size_t> kept() const {
    std::vector<std::size_t> all;
    for (std::size_t begin = 0; begin < choices_.size(); begin += shape_.samples) {
      std::vector<std::size_t> of_prompt(shape_.samples);
      std::iota(of_prompt.begin(), of_prompt.end(), begin);
      if (shape_.kept < shape_.samples) std::ranges::stable_sort(of_prompt, std::ranges::greater(), [&](std::size_t i) { return choices_[i].mean(); });
      of_prompt.resize(shape_.kept);
      all.insert(all.end(), of_prompt.begin(), of_prompt.end());
    }
    return all;
  }
  CompletionShape shape_;
  const tessera::Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
  Json kv_transfer_;
  HttpReplyPtr reply_;
};

class Streamed final : public AnswerWriter {
 public:
  Streamed(CompletionShape shape, const tessera::Tokenizer& tokenizer, std::size_t choices, StreamFields stream, HttpReplyPtr reply)
      : shape_(std::move(shape)), tokenizer_(tokenizer), choices_(choices), stream_(stream), reply_(std::move(reply)) {}

  void begin() override {
    reply_->begin_stream(sse_response(), kSseIdle);
    for (std::size_t i = 0; i < choices_.size() && !shape_.echoes.empty(); ++i) {
      const CompletionShape::Prompt& prompt = shape_.echoes[i / shape_.samples];
      if (shape_.shows_logprobs) choices_[i].logprobs.add_prompt(tokenizer_, prompt, shape_.top);
      send(i, prompt.text);
    }
  }
  [[nodiscard]] bool wants_progress() const override { return true; }
  void progress(const PromptProgress& progress) override {
    if (stream_.shows_progress) send(0, "", Json(), to_json(progress));
    else reply_->write(comments_.next(progress));
  }
  void token_at(std::size_t i, const tessera::Piece& piece, std::size_t at) override {
    choices_[i].logprobs.add(tokenizer_, piece, shape_.top, shape_.echoed(i) + at);
  }
  void add(std::size_t i, const OutputDelta& delta) override { send(i, delta.text); }
  void finish(std::size_t i, const Finish& finish) override { send(i, "", openai_reason(finish)); }
  void end(const Usage& usage) override {
    if (stream_.shows_usage) reply_->write(sse(shape_.object().set("choices", Json::array()).set("usage", openai_usage(usage))));
    end_openai_stream(*reply_);
  }
  void fail(const ApiError& error) override { fail_openai_stream(*reply_, error); }

 private:
  struct Choice {
    Logprobs logprobs;  // tokens whose text has not come yet
  };
  void send(std::size_t i, const std::string& text, Json reason = {}, Json progress = {}) {
    Choice& c = choices_[i];
    Json logprobs;
    if (!c.logprobs.empty()) logprobs = c.logprobs.take();
    Object chunk = shape_.object().set("choices", Json::Array{one_choice(i, text, std::move(logprobs), std::move(reason))});
    if (stream_.shows_usage) chunk.set("usage", Json());
    if (!progress.is_null()) chunk.set("prompt_progress", std::move(progress));
    reply_->write(sse(chunk));
  }
  CompletionShape shape_;
  const tessera::Tokenizer& tokenizer_;
  std::vector<Choice> choices_;
  StreamFields stream_;
  ProgressComments comments_;
  HttpReplyPtr reply_;
};

struct Prompt {
  std::vector<tessera::Token> tokens;
  std::string text;  // for echo
};

Prompt of_ids(const Fields& fields, const ServedModel& model, const Json::Array& ids) {
  Prompt prompt;
  for (const Json& id : ids) {
    const std::int64_t* token = id.integer();
    if (token == nullptr || *token < 0 || static_cast<std::uint64_t>(*token) >= model.engine().spec().vocab_size) {
      fields.refuse("prompt", "This must be a text, a list of texts, a list of token ids, or a list of lists of token ids.");
    }
    prompt.tokens.push_back(static_cast<tessera::Token>(*token));
  }
  prompt.text = value_or_refuse(model.tokenizer().decode(prompt.tokens), "prompt");
  return prompt;
}

Prompt of_text(const ServedModel& model, const std::string& text) {
  Prompt prompt{.tokens = model.encode(text), .text = text};
  const auto bos = model.tokenizer().bos();
  if (prompt.tokens.empty() && bos) prompt.tokens.push_back(*bos);
  return prompt;
}

std::vector<Prompt> read_prompts(Fields& fields, const ServedModel& model, std::size_t most) {
  const Json* given = fields.any("prompt");
  std::vector<Prompt> prompts;
  if (given == nullptr) {
    prompts.push_back(of_text(model, ""));
  } else if (given->string() != nullptr) {
    prompts.push_back(of_text(model, *given->string()));
  } else if (given->elements() == nullptr || given->elements()->empty()) {
    fields.refuse("prompt", "This must be a text, a list of texts, a list of token ids, or a list of lists of token ids.");
  } else if (given->elements()->front().integer() != nullptr) {
    prompts.push_back(of_ids(fields, model, *given->elements()));
  } else {
    if (given->elements()->size() > most) fields.refuse("prompt", fmt::format("There may be {} prompts at most.", most));
    for (const Json& each : *given->elements()) {
      if (each.string() != nullptr) prompts.push_back(of_text(model, *each.string()));
      else prompts.push_back(of_ids(fields, model, each.elements() != nullptr ? *each.elements() : Json::Array{Json()}));
    }
  }
  return prompts;
}

// Makes prompts that fill in text between the prompts and `suffix`.
void read_suffix(Fields& fields, const ServedModel& model, std::vector<Prompt>& prompts) {
  const auto suffix = fields.text("suffix");
  if (!suffix || suffix->empty()) return;
  for (Prompt& prompt : prompts) prompt.tokens = fill_in_prompt(model, std::move(prompt.tokens), *suffix);
}

// A completions request that has been read. If it asks for scores of its prompts, these are computed next (score_and_start()).
struct Asked {
  AnswerFields answer;
  std::vector<Prompt> prompts;
  std::optional<tessera::Matcher> matcher{};
  CompletionShape shape;
  StreamFields stream{};
  KvWish kv{};
};

// Writes answers that have no tokens, at most the echoed prompts.
void end_at_once(AnswerWriter& writer, const Asked& asked, const Call& call) {
  AnswerReport report;
  writer.begin();
  const std::size_t choices = asked.prompts.size() * asked.shape.samples;
  for (std::size_t i = 0; i < choices; ++i) writer.finish(i, {.reason = FinishReason::max_tokens});
  for (const Prompt& prompt : asked.prompts) report.usage.prompt_tokens += prompt.tokens.size();
  report.cut = choices;
  writer.end(report.usage);
  call.on_answered(report);
}

void start(const Api& api, const Call& call, Asked asked) {
  ServedModel& model = api.job.model;
  const std::size_t choices = asked.prompts.size() * asked.shape.samples;
  const bool has_tokens = asked.answer.max_tokens != kNoTokens, scores_choices = asked.shape.kept < asked.shape.samples;
  std::vector<AnswerPlan> plans;
  for (Prompt& prompt : asked.prompts) {
    if (!has_tokens) break;
    plans.push_back({.request = make_request(model, api.limits, call.caller, asked.answer, prompt.tokens, {.matcher = asked.matcher}),
                     .shows_logprobs = asked.answer.shows_logprobs || scores_choices});
    if (scores_choices) plans.back().request.generate.logprobs = std::max<std::uint32_t>(plans.back().request.generate.logprobs, 1);
  }
  if (asked.kv.exports && plans.size() == 1) call.kv.export_prompt(plans.front(), model.engine().plan().page_tokens, call);
  std::unique_ptr<AnswerWriter> writer;
  if (asked.stream.streams) writer = std::make_unique<Streamed>(asked.shape, model.tokenizer(), choices, asked.stream, call.reply);
  else writer = std::make_unique<Whole>(asked.shape, model.tokenizer(), choices, call.reply);
  if (!has_tokens) return end_at_once(*writer, asked, call);
  start_job(api.job, std::move(plans), std::move(writer), call.reply, call.on_answered, call.lease);
}

// Scores the prompts, a few rows at a time, and then starts the job.
void score_and_start(const Api& api, const Call& call, Asked asked) {
  std::vector<std::vector<tessera::Token>> tokens;
  for (const Prompt& prompt : asked.prompts) tokens.push_back(prompt.tokens);
  auto scoring = std::make_shared<PromptScoring>(api.job.model, api.job.slices, call.caller, std::move(tokens), asked.answer.logprobs);
  auto held = std::make_shared<Asked>(std::move(asked));
  api.job.workers.post_long([&api, call, scoring, held] {
    const auto refuse = [&](const ApiError& error) {
      call.reply->send(to_response(error, ApiKind::openai));
      call.on_answered({.usage = {}, .status = error.status, .error = error.what()});
      return true;
    };
    try {
      if (call.reply->gone()) {
        call.on_answered({.usage = {}, .status = 499, .error = "the client went away"});
        return true;
      }
      if (!scoring->advance()) return false;
      std::vector<PromptScores> scores = scoring->take();
      for (std::size_t i = 0; i < scores.size(); ++i) held->shape.echoes.at(i).scores = std::move(scores[i]);
      start(api, call, std::move(*held));
      return true;
    } catch (const ApiError& error) {
      return refuse(error);
    } catch (const std::bad_alloc&) {
      return refuse(ApiError(503, "The server is out of memory for this request."));
    } catch (const std::exception& error) {
      return refuse(ApiError(500, error.what()));
    }
  });
}

// Returns how many samples are drawn; `kept` of these samples are shown.
std::uint32_t read_best_of(Fields& fields, const RequestLimits& limits, std::uint32_t kept, bool streams) {
  const auto best_of = fields.integer("best_of", 1, limits.samples);
  if (!best_of) return kept;
  if (*best_of < static_cast<std::int64_t>(kept)) fields.refuse("best_of", "best_of must not be below n.");
  if (streams && *best_of > static_cast<std::int64_t>(kept)) fields.refuse("best_of", "The best answers are known at their end: leave best_of out, or stream out.");
  return static_cast<std::uint32_t>(*best_of);
}

}  // namespace

void completions(const Api& api, const Call& call) {
  ServedModel& model = api.job.model;
  const Json body = body_of(call, kCompletions);
  Fields fields(body);
  pass_model(fields);
  AnswerFields answer;
  read_drawing(fields, model, answer);
  std::vector<Prompt> prompts = read_prompts(fields, model, api.limits.prompts);
  answer.max_tokens = read_most_tokens(fields, {"max_tokens", "n_predict"}, 0).value_or(16);  // OpenAI's default
  answer.stops = read_stops(fields, "stop", api.limits);
  if (const auto logprobs = fields.integer("logprobs", 0, api.limits.logprobs)) {
    answer.shows_logprobs = true;
    answer.logprobs = static_cast<std::uint32_t>(*logprobs);
  }
  const bool echoes = fields.boolean("echo").value_or(false);
  std::optional<AnswerForm> form = read_form(fields.object("response_format"), "response_format", false);
  read_guided(fields, form);
  std::optional<tessera::Matcher> matcher;
  if (form) matcher = model.matcher(source_of(*form), form->field);
  const StreamFields stream = read_stream(fields);
  KvWish kv = read_kv_wish(fields, stream.streams);
  if (kv.exports) answer.max_tokens = 1;
  const auto kept = static_cast<std::uint32_t>(fields.integer("n", 1, api.limits.samples).value_or(1));
  answer.samples = read_best_of(fields, api.limits, kept, stream.streams);
  CompletionShape shape{.id = new_id("cmpl-"), .model = call.caller.answering(model.id()), .created = unix_time(), .shows_logprobs = answer.shows_logprobs, .top = answer.logprobs, .echoes = {},
              .samples = answer.samples, .kept = kept};
  for (const Prompt& prompt : prompts) {
    if (echoes) shape.echoes.push_back({.text = prompt.text, .tokens = prompt.tokens});
    if (echoes && answer.shows_logprobs && prompt.tokens.size() > model.context()) (void)answer_room(model, api.limits, answer, prompt.tokens.size());
  }
  read_suffix(fields, model, prompts);
  fields.done(call.notes);
  Asked asked{.answer = answer, .prompts = std::move(prompts), .matcher = std::move(matcher), .shape = std::move(shape), .stream = stream, .kv = kv};
  if (echoes && answer.shows_logprobs) return score_and_start(api, call, std::move(asked));
  if (!kv.imports || asked.prompts.size() != 1) return start(api, call, std::move(asked));
  const auto held = std::make_shared<Asked>(std::move(asked));
  call.kv.import_prompt(api, call, kv, held->prompts.front().tokens, [&api, call, held] { start(api, call, std::move(*held)); });
}

}  // namespace server
