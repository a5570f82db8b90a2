#include "answers/answer_job.hpp"

#include <algorithm>
#include <atomic>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "answers/answer_tokens.hpp"
#include "failure.hpp"

namespace server {

using tessera::FinishReason;
using tessera::OutputDelta;
using tessera::OutputParser;
using tessera::Piece;
using tessera::RequestHandle;

namespace {

constexpr std::size_t kMostUnsent = 64 << 10;  // the request waits for its client while this many bytes or more are unsent

std::string call_id() {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id = "call_";
  for (int i = 0; i < 24; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(const JobContext& context, std::unique_ptr<AnswerWriter> writer, HttpReplyPtr reply, OnAnswered on_answered, ModelLease lease)
      : lease_(std::move(lease)), context_(context), writer_(std::move(writer)), reply_(std::move(reply)), on_answered_(std::move(on_answered)) {}

  void start(std::vector<AnswerPlan> plans);
  // Makes a worker call run() soon. Any thread may call it.
  void wake() {
    if (wakes_.fetch_add(1) != 0) return;
    try {
      context_.workers.post([self = shared_from_this()] { self->run(); });
    } catch (...) {
      wakes_ = 0;  // otherwise no later wake() would post run()
      throw;
    }
  }

 private:
  struct Choice {
    std::optional<OutputParser> parser;
    std::optional<AnswerTokens> answer_tokens;  // if log-probabilities are shown
    std::size_t text_bytes = 0;                 // bytes of the output, if no parser reads it
    std::uint64_t tokens = 0;
    bool has_calls = false;
  };
  struct JobRequest {
    std::optional<RequestHandle> handle{};
    std::size_t first_choice = 0;
    std::vector<std::string> stops;
    std::function<tessera::Json(tessera::Session)> on_session{};
    std::uint64_t taken = 0;  // tokens taken from the handle
    tessera::RequestFigures figures{};  // figures at the last look()
  };

  void run();
  void look();
  void tell_progress();
  bool read(JobRequest& part);
  void take(JobRequest& part, const tessera::RequestPiece& piece);
  void give(std::size_t index, std::vector<OutputDelta> deltas);
  void give_text(std::size_t index, const Piece& piece);
  void give_tokens(std::size_t index, const std::vector<AnswerTokens::Token>& tokens);
  void count(const JobRequest& part);
  void fail(const ApiError& error);
  void finish();
  void report(unsigned status, std::string error);

  ModelLease lease_;  // destroyed last, because the other members refer to the model
  JobContext context_;
  std::unique_ptr<AnswerWriter> writer_;
  HttpReplyPtr reply_;
  OnAnswered on_answered_;
  std::atomic<std::uint64_t> wakes_{0};
  std::vector<JobRequest> parts_;
  std::vector<Choice> choices_;
  const tessera::OutputFormat* format_ = nullptr;  // format of chat answers
  Usage usage_;
  AnswerReport report_;
  bool begun_ = false, over_ = false;
  bool wants_progress_ = false;  // the writer wants progress, and not all prompts are computed
  PromptProgress progress_;      // the progress that the writer got last
  bool reasons_ = false;  // the present piece adds to the reasoning
};

void Job::start(std::vector<AnswerPlan> plans) {
  wakes_ = 1;  // run() does not begin until all plans are submitted
  wants_progress_ = writer_->wants_progress();
  for (AnswerPlan& plan : plans) {
    JobRequest part{.first_choice = choices_.size(), .stops = plan.request.generate.stop_strings, .on_session = std::move(plan.on_session)};
    for (std::uint32_t i = 0; i < plan.request.samples; ++i) {
      Choice choice;
      if (plan.chat) {
        format_ = &context_.model.format(!plan.chat->tools.empty());
        choice.parser = value_or_refuse(OutputParser::create(*format_, {.starts_in_reasoning = plan.chat->in_reasoning, .tools = plan.chat->tools}));
      }
      if (plan.shows_logprobs) choice.answer_tokens.emplace(context_.model.tokenizer(), plan.request.generate, plan.request.prompt);
      choices_.push_back(std::move(choice));
    }
    plan.request.tells_progress = wants_progress_;
    plan.request.on_ready = [weak = weak_from_this()] {
      if (const auto job = weak.lock()) job->wake();
    };
    auto handle = context_.scheduler.submit(std::move(plan.request));
    if (!handle) {
      ApiError error = api_error(handle.error());
      if (error.status == 429) error.retry_after = std::max(1.0, context_.scheduler.expected_wait());
      throw error;
    }
    part.handle = *std::move(handle);
    parts_.push_back(std::move(part));
  }
  reply_->on_change([self = shared_from_this()] { self->wake(); });  // this keeps the job alive as long as the client is there
  context_.workers.post([self = shared_from_this()] { self->run(); });
}

// Does the job's work (reads pieces from the scheduler, writes them to the client). Repeats it if a wake() came during the work. wake()
// posts run() only if no run() is pending or under way, so only one thread at a time is in run().
void Job::run() {
  for (;;) {
    const std::uint64_t seen = wakes_.load();
    if (!over_) {
      try {
        look();
      } catch (const ApiError& error) {
        fail(error);
      } catch (const std::exception& error) {
        fail(ApiError(500, error.what()));
      }
    }
    std::uint64_t expected = seen;
    if (wakes_.compare_exchange_strong(expected, 0)) return;
  }
}

void Job::look() {
  if (!std::exchange(begun_, true)) writer_->begin();
  if (reply_->gone()) return report(499, "the client went away");
  if (wants_progress_) tell_progress();
  bool goes_on = false;
  for (JobRequest& part : parts_) goes_on = read(part) || goes_on;
  if (!goes_on && !over_) finish();
}

// Tells the writer the progress of the prompts. Called before pieces are read, since a prompt is computed before its answer.
void Job::tell_progress() {
  PromptProgress now;
  double begin = -1.0, end = -1.0;
  for (JobRequest& part : parts_) {
    if (part.handle) part.figures = part.handle->figures();
    const tessera::RequestFigures& figures = part.figures;
    now.total += figures.prompt_tokens;
    now.cached += figures.reused_tokens;
    now.computed += figures.computed_tokens;
    end = std::max(end, figures.progressed);
    if (figures.scheduled >= 0.0) begin = begin < 0.0 ? figures.scheduled : std::min(begin, figures.scheduled);
  }
  now.cached = std::min(now.cached, now.computed);
  now.seconds = std::max(end - begin, 0.0);
  if (now.computed <= progress_.computed) return;
  wants_progress_ = now.computed < now.total;
  writer_->progress(progress_ = now);
}

// Reads the pieces of one prompt's answer that are ready, as long as the client takes them. Returns whether more pieces will come.
bool Job::read(JobRequest& part) {
  if (!part.handle) return false;
  for (;;) {
    if (reply_->unsent() >= kMostUnsent) return true;
    auto next = part.handle->try_next();
    if (!next) break;
    take(part, *next);
  }
  if (part.handle->state() != tessera::RequestState::ended) return true;
  while (auto next = part.handle->try_next()) take(part, *next);  // pieces that came since the first look
  if (const tessera::Status status = part.handle->status(); !status) throw api_error(status.error());
  count(part);
  if (part.on_session) {
    if (auto session = part.handle->take_session()) {
      try {
        if (tessera::Json params = part.on_session(*std::move(session)); !params.is_null()) writer_->kv_transfer(std::move(params));
      } catch (const std::exception&) {  // no memory for the export: the answer goes out without kv_transfer_params
      }
    }
  }
  part.handle.reset();
  return false;
}

// Counts the scheduler's work for one prompt. If the answer was cut, tokens that the job has not taken count too.
void Job::count(const JobRequest& part) {
  const tessera::RequestFigures figures = part.handle->figures();
  usage_.completion_tokens += figures.tokens - std::min(figures.tokens, part.taken);
  usage_.prompt_tokens += figures.prompt_tokens;
  usage_.cached_tokens += figures.reused_tokens;
  usage_.drafted_tokens += figures.drafted;
  usage_.accepted_tokens += figures.accepted;
  if (figures.scheduled >= 0.0) usage_.reading_seconds = std::max(usage_.reading_seconds, figures.first_token - figures.scheduled);
  if (figures.first_token >= 0.0) usage_.writing_seconds = std::max(usage_.writing_seconds, figures.ended - figures.first_token);
  report_.queue = std::max(report_.queue, figures.scheduled - figures.submitted);
  report_.time_to_first_token = std::max(report_.time_to_first_token, figures.first_token - figures.submitted);
  report_.seconds = std::max(report_.seconds, figures.ended - figures.submitted);
}

void Job::take(JobRequest& part, const tessera::RequestPiece& got) {
  const std::size_t index = part.first_choice + got.sample;
  Choice& choice = choices_[index];
  const Piece& piece = got.piece;
  ++choice.tokens;
  ++part.taken;
  writer_->count(++usage_.completion_tokens);
  if (choice.answer_tokens) choice.answer_tokens->push(piece);
  if (!choice.parser) {
    give_text(index, piece);
  } else {
    give(index, value_or_refuse(choice.parser->push(piece.text)));
    if (piece.finish == FinishReason::end_of_generation) {
      const std::string_view end = context_.model.tokenizer().text(piece.token);
      if (format_->closes_with(end)) give(index, value_or_refuse(choice.parser->push(end)));
    }
    if (piece.finish != FinishReason::none) give(index, value_or_refuse(choice.parser->finish(output_end(piece.finish))));
  }
  if (std::exchange(reasons_, false)) ++usage_.reasoning_tokens;
  if (piece.finish == FinishReason::none) return;
  ++(piece.finish == FinishReason::max_tokens ? report_.cut : report_.stopped);
  Finish how{.reason = piece.finish, .has_calls = choice.has_calls};
  if (piece.stop_string >= 0) how.stop = part.stops.at(static_cast<std::size_t>(piece.stop_string));
  writer_->finish(index, how);
}

// Writes a piece of an answer that is plain text. Tokens without text, for example control tokens, are part of the answer too.
void Job::give_text(std::size_t index, const Piece& piece) {
  Choice& choice = choices_[index];
  choice.text_bytes += piece.text.size();
  if (choice.answer_tokens) {
    const tessera::OutputSpan all{0, choice.text_bytes};
    give_tokens(index, choice.answer_tokens->take({&all, 1}));
    if (piece.finish != FinishReason::none && piece.finish != FinishReason::stop_string) give_tokens(index, choice.answer_tokens->take_rest());
  }
  if (!piece.text.empty()) writer_->add(index, {.text = piece.text});
}

void Job::give_tokens(std::size_t index, const std::vector<AnswerTokens::Token>& tokens) {
  for (const AnswerTokens::Token& token : tokens) writer_->token_at(index, token.piece, token.characters);
}

void Job::give(std::size_t index, std::vector<OutputDelta> deltas) {
  Choice& choice = choices_[index];
  std::vector<AnswerTokens::Token> tokens;
  if (choice.answer_tokens) tokens = choice.answer_tokens->take(value_or_refuse(choice.parser->take_text_spans()));
  for (OutputDelta& delta : deltas) {
    if (delta.kind == OutputDelta::Kind::text) give_tokens(index, std::exchange(tokens, {}));
    if (delta.kind == OutputDelta::Kind::call_begin) {
      choices_[index].has_calls = true;
      if (delta.id.empty()) delta.id = call_id();
    }
    reasons_ = reasons_ || delta.kind == OutputDelta::Kind::reasoning;
    writer_->add(index, delta);
  }
}

void Job::fail(const ApiError& error) {
  writer_->fail(error);
  report(error.status, error.what());
}

void Job::finish() {
  writer_->end(usage_);
  report(200, {});
}

void Job::report(unsigned status, std::string error) {
  over_ = true;
  for (const JobRequest& part : parts_) {
    if (part.handle) count(part);
  }
  parts_.clear();  // cancels requests that still run
  report_.usage = usage_;
  report_.status = status;
  report_.error = std::move(error);
  if (on_answered_) std::exchange(on_answered_, nullptr)(report_);
  writer_.reset();
  reply_.reset();
}

}  // namespace

void start_job(const JobContext& context, std::vector<AnswerPlan> plans, std::unique_ptr<AnswerWriter> writer, HttpReplyPtr reply,
               OnAnswered on_answered, ModelLease lease) {
  const auto job = std::make_shared<Job>(context, std::move(writer), std::move(reply), std::move(on_answered), std::move(lease));
  job->start(std::move(plans));
}

}  // namespace server
