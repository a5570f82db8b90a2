#include <tessera/session.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

#include <tessera/batch.hpp>

#include "engine/append.hpp"
#include "engine/edit.hpp"
#include "engine/log_probs.hpp"
#include "engine/run_batch.hpp"
#include "engine/states.hpp"
#include "support/error.hpp"
#include "support/fp_state.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;
using detail::RowOutput;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Log-probabilities of the token that follows each row; the last row's logits stay in `row`.
class ScoreSink final : public detail::OutputSink {
 public:
  ScoreSink(std::span<const detail::RunRow> rows, std::span<float> row, std::vector<float>& scores) noexcept
      : rows_(rows), row_(row), scores_(scores) {}
  std::span<float> destination(std::size_t) override { return row_; }
  void done(std::size_t row) override {
    if (row + 1 < rows_.size()) add(rows_[row + 1].token);
  }
  void add(Token next) {
    const auto log_sum = detail::log_sum_exp(row_);
    if (!log_sum) {
      status_ = log_sum.error();
    } else {
      scores_.push_back(static_cast<float>(static_cast<double>(row_[static_cast<std::size_t>(next)]) - *log_sum));
    }
  }
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  std::span<const detail::RunRow> rows_;
  std::span<float> row_;
  std::vector<float>& scores_;
  Status status_;
};

}  // namespace

Session::Session(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Logits> Session::append(std::span<const Token> tokens, const AppendOptions& options) noexcept {
  return guard([&]() -> Result<Logits> {
    if (state_ == nullptr) return detail::moved_from("session");
    const auto start = Clock::now();
    const std::size_t rows = state_->pending().size() + tokens.size();
    TESSERA_TRY(const Logits logits, detail::append(*state_, tokens, options));
    state_->prompt_tokens += rows;
    state_->prompt_seconds += seconds_since(start);
    return logits;
  });
}

Result<std::vector<float>> Session::score(std::span<const Token> tokens, const AppendOptions& options) noexcept {
  return guard([&]() -> Result<std::vector<float>> {
    if (state_ == nullptr) return detail::moved_from("session");
    const detail::FpState fp_state;
    const auto start = Clock::now();
    State& s = *state_;
    detail::Recycled<detail::RunRows>::Lease lease(s.shared->run_rows);
    std::vector<detail::RunRow>& rows = lease->list;
    const std::size_t first = detail::make_rows(s, tokens, rows);
    if (tokens.empty()) return make_error(ErrorCode::invalid_argument, "there are no tokens to score");
    // The last pending row's logits, if there is one, are for the first token.
    for (detail::RunRow& row : std::span(rows).subspan(first > 0 ? first - 1 : 0)) row.output = RowOutput::logits;

    std::vector<float> scores;
    scores.reserve(tokens.size());
    TESSERA_TRY_STATUS(s.next_logits.ensure(*s.shared->options.memory, 1, s.vocab()));
    const std::span<float> row = s.next_logits.values().first(s.vocab());
    ScoreSink sink(rows, row, scores);
    if (first == 0) {  // what precedes the first token is behind us
      const std::span<const float> before = logits();
      const auto valid = tokens[0] >= 0 && static_cast<std::size_t>(tokens[0]) < s.vocab();
      if (before.empty() || !valid) {
        if (s.kv.length() > 0 && valid) {
          return make_error(ErrorCode::invalid_state,
                            "the logits after the last token are not known (they were not asked for, or the session was "
                            "truncated): append a token first");
        }
        scores.push_back(std::numeric_limits<float>::quiet_NaN());
      } else {
        std::copy(before.begin(), before.end(), row.begin());
        sink.add(tokens[0]);
      }
    }
    detail::RunOptions run = detail::all_layers(*s.shared, options.stop);
    // Logits of which there is no score stop the batch, which then undoes itself.
    run.progress = [&](std::size_t done, std::size_t total) {
      return sink.status().has_value() && (!options.progress || options.progress(done, total));
    };
    const Status status = detail::run_batch(*s.shared, rows, run, sink);
    TESSERA_TRY_STATUS(sink.status());
    TESSERA_TRY_STATUS(status);
    std::swap(s.logits, s.next_logits);
    s.logits_rows = 1;
    s.has_last = true;
    s.prompt_tokens += rows.size();
    s.prompt_seconds += seconds_since(start);
    return scores;
  });
}

Result<GenerationSummary> Session::generate(Sampler& sampler, const GenerateOptions& options,
                                            const std::function<bool(const Piece&)>& callback) noexcept {
  return guard([&]() -> Result<GenerationSummary> {
    Generation generation = generate(sampler, options);
    while (auto piece = generation.next()) {
      if (!*piece) return std::move(*piece).error();
      if (callback && !callback(**piece) && (*piece)->finish == FinishReason::none) {
        return GenerationSummary{.finish = FinishReason::callback, .figures = generation.figures()};
      }
    }
    return GenerationSummary{.finish = generation.finish_reason(), .figures = generation.figures()};
  }, ErrorCode::callback_failed);
}

void Session::truncate(std::size_t position) noexcept { detail::truncate(*state_, position); }

Status Session::remove(std::size_t first, std::size_t last) noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return detail::moved_from("session");
    return detail::remove(*state_, first, last);
  });
}

Status Session::keep_window(std::size_t sinks, std::size_t window) noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return detail::moved_from("session");
    return detail::keep_window(*state_, sinks, window);
  });
}

std::size_t Session::position() const noexcept { return state_->kv.length(); }
std::span<const Token> Session::tokens() const noexcept { return state_->tokens; }
bool Session::has_pending() const noexcept { return state_->has_pending(); }
std::span<const float> Session::logits() const noexcept {
  const State& s = *state_;
  if (!s.has_last || s.has_pending()) return {};
  return s.last_logits();
}
Status Session::suspend() noexcept {
  return state_ == nullptr ? detail::moved_from("session") : state_->kv.suspend();
}
Status Session::prefetch() noexcept {
  return state_ == nullptr ? detail::moved_from("session") : state_->kv.prefetch();
}
Status Session::resume() noexcept {
  return state_ == nullptr ? detail::moved_from("session") : state_->kv.resume();
}
bool Session::suspended() const noexcept { return state_->kv.suspended(); }
bool Session::edited() const noexcept { return state_->kv.edited(); }
std::size_t Session::context() const noexcept { return state_->kv.capacity(); }
std::size_t Session::reused() const noexcept { return state_->reused; }
const KvCache& Session::kv() const noexcept { return state_->kv; }
const Engine& Session::engine() const noexcept { return state_->engine; }

Status Batch::add(Session& session, const Row& row) noexcept {
  return guard([&]() -> Status {
    if (session.state_ == nullptr) return detail::moved_from("session");
    rows_.push_back({&session, row});
    return {};
  });
}

Status Batch::add(Session& session, std::span<const Token> tokens, Want want) noexcept {
  return guard([&]() -> Status {
    if (session.state_ == nullptr) return detail::moved_from("session");
    rows_.reserve(rows_.size() + tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      rows_.push_back({&session, {.token = tokens[i], .embedding = {}, .want = i + 1 == tokens.size() ? want : Want::nothing}});
    }
    return {};
  });
}

void Batch::clear() noexcept { rows_.clear(); }

}  // namespace tessera
