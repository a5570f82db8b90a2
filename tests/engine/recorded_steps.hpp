// Records the descriptions of an engine's steps and what came of them, and executes them again elsewhere: with weights that are loaded a
// second time, with pages of a memory of its own, and without the engine and its sessions.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <vector>

#include "engine/models.hpp"
#include "engine/step_bytes.hpp"
#include "engine/wrapped_backend.hpp"
#include "kv/pages/pools_state.hpp"
#include "model/step/step_executor.hpp"

namespace tessera::test {

// What came of a step.
struct StepResults {
  std::map<std::size_t, std::vector<float>> values;          // [row]: logits, a hidden state or an embedding
  std::map<std::size_t, Token> tokens;                       // [row]: drawn by the backend
  std::map<std::uint32_t, std::vector<std::uint64_t>> votes;  // [sequence]
};

inline bool operator==(const StepResults& a, const StepResults& b) {
  const auto same = [](const auto& one, const auto& other) { return one.first == other.first && same_bits(one.second, other.second); };
  return std::ranges::equal(a.values, b.values, same) && a.tokens == b.tokens && a.votes == b.votes;
}

// Keeps a step's results, and hands them on to `behind` if there is one.
class ResultsSink final : public detail::OutputSink {
 public:
  ResultsSink(const detail::Model& model, const detail::StepDescription& step, StepResults& results, detail::OutputSink* behind = nullptr)
      : model_(model), step_(step), results_(results), behind_(behind) {
    for (const detail::DescribedRow& row : step.rows) {
      if (!row.votes) continue;
      auto& sums = results.votes[row.sequence];
      sums.resize(std::max<std::size_t>(sums.size(), row.position + 1));
    }
  }
  std::span<float> destination(std::size_t row) override {
    if (behind_ != nullptr) return at_ = behind_->destination(row);
    own_.resize(step_.rows[row].output == detail::RowOutput::logits ? model_.spec.vocab_size : model_.spec.d_model);
    return at_ = own_;
  }
  void done(std::size_t row) override {
    results_.values[row].assign(at_.begin(), at_.end());
    if (behind_ != nullptr) behind_->done(row);
  }
  void drawn(std::size_t row, Result<Token> token) override {
    results_.tokens[row] = token ? *token : -1;
    if (behind_ != nullptr) behind_->drawn(row, std::move(token));
  }
  std::span<std::uint64_t> votes(std::size_t row) override { return results_.votes.at(step_.rows[row].sequence); }
  // Hands the votes on.
  void add_votes() {
    std::map<std::uint32_t, bool> added;
    for (std::size_t row = 0; row < step_.rows.size(); ++row) {
      if (!step_.rows[row].votes || std::exchange(added[step_.rows[row].sequence], true)) continue;
      const auto& sums = results_.votes.at(step_.rows[row].sequence);
      const auto to = behind_->votes(row);
      for (std::size_t i = 0; i < sums.size(); ++i) to[i] += sums[i];
    }
  }

 private:
  const detail::Model& model_;
  const detail::StepDescription& step_;
  StepResults& results_;
  detail::OutputSink* behind_;
  std::vector<float> own_;
  std::span<float> at_;
};

struct RecordedStep {
  enum class Kind { step, guess, move } kind = Kind::step;
  bool succeeded = false;
  detail::StepDescription step = {};
  detail::MoveDescription move = {};
  std::vector<std::vector<float>> embeddings = {};
  StepResults results = {};
  std::vector<float> hidden_before = {}, hidden_behind = {}, logits = {};  // of a guess
};

// The engine's executor, with a record of what it was given and what came of it.
class RecordingExecutor final : public detail::StepExecutor {
 public:
  RecordingExecutor(std::unique_ptr<StepExecutor> inner, const detail::Model& model, std::vector<RecordedStep>& record)
      : inner_(std::move(inner)), model_(model), record_(record) {}

  Status execute(const detail::StepDescription& step, const detail::StepInputs& inputs, detail::OutputSink& sink,
                 const std::stop_token& stop) noexcept override {
    RecordedStep& one = record_.emplace_back(RecordedStep{.step = step});
    for (const float* values : inputs.embeddings) one.embeddings.emplace_back(values, values + model_.spec.d_model);
    ResultsSink recording(model_, one.step, one.results, &sink);
    const Status status = inner_->execute(step, inputs, recording, stop);
    recording.add_votes();
    one.succeeded = status.has_value();
    return status;
  }
  Status guess(const detail::StepDescription& step, std::span<float> hidden, std::span<float> logits,
               const std::stop_token& stop) noexcept override {
    RecordedStep& one = record_.emplace_back(RecordedStep{.kind = RecordedStep::Kind::guess, .step = step});
    one.hidden_before.assign(hidden.begin(), hidden.end());
    const Status status = inner_->guess(step, hidden, logits, stop);
    one.hidden_behind.assign(hidden.begin(), hidden.end());
    one.logits.assign(logits.begin(), logits.end());
    one.succeeded = status.has_value();
    return status;
  }
  Status reserve(const detail::StepPages& pages) noexcept override { return inner_->reserve(pages); }
  Status move(const detail::MoveDescription& move) noexcept override {
    RecordedStep& one = record_.emplace_back(RecordedStep{.kind = RecordedStep::Kind::move, .move = move});
    const Status status = inner_->move(move);
    one.succeeded = status.has_value();
    return status;
  }

 private:
  std::unique_ptr<StepExecutor> inner_;
  const detail::Model& model_;
  std::vector<RecordedStep>& record_;
};

// Records the engine's steps from now on. It has no sessions yet.
inline void record_steps(const Engine& engine, std::vector<RecordedStep>& record) {
  const EngineParts state = parts_of(engine);
  detail::keep_copies(*state.kv_pools);
  state.steps = std::make_unique<RecordingExecutor>(std::move(state.steps), state.model, record);
}

// Returns the layouts of the engine's caches by their numbers.
inline std::vector<KvLayout> layouts_of(const Engine& engine) {
  std::vector<KvLayout> layouts;
  for (const auto& pooled : parts_of(engine).kv_pools->state()->layouts) layouts.push_back(pooled->layout);
  return layouts;
}

// Pages that exist as soon as a description names them, full of NaN.
class NamedPages final : public detail::PageMemory {
 public:
  explicit NamedPages(std::vector<KvLayout> layouts) : layouts_(std::move(layouts)) {}

  Status copy(std::span<const detail::PageCopy> copies) override {
    for (const detail::PageCopy& copy : copies) {
      const auto page = [&](detail::PageId id) { return named({detail::SequencePages::kPaged, copy.page_bytes, id}, copy.page_bytes); };
      std::memcpy(page(copy.to), page(copy.from), copy.page_bytes);
    }
    return {};
  }
  Status find(const detail::StepPages& pages, detail::PageAddresses& out) override {
    out.begin(pages);
    for (const detail::SequencePages& sequence : pages.sequences) {
      const KvLayout& layout = layouts_.at(sequence.layout);
      const bool paged = sequence.cache == detail::SequencePages::kPaged;
      const bool found = out.add(pages, layout, [&](std::size_t group, detail::PageId id) {
        const std::uint64_t bytes = layout.groups[group].page_bytes;
        return named({sequence.cache, paged ? bytes : group + 1000 * sequence.layout, id}, bytes);
      });
      REQUIRE(found);
    }
    return {};
  }

 private:
  using Name = std::tuple<std::uint32_t, std::uint64_t, detail::PageId>;  // cache; bytes of a page, or group and layout; number
  struct Free {
    void operator()(std::byte* page) const noexcept { ::operator delete(page, std::align_val_t{64}); }
  };

  std::byte* named(const Name& name, std::uint64_t bytes) {
    auto& page = pages_[name];
    if (page == nullptr) {
      page.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64})));
      std::memset(page.get(), 0xff, bytes);
    }
    return page.get();
  }

  std::vector<KvLayout> layouts_;
  std::map<Name, std::unique_ptr<std::byte, Free>> pages_;
};

// What the steps of a record have.
struct Covered {
  std::size_t copies = 0, moves = 0, guesses = 0, branches = 0, votes = 0, draws = 0, embeddings = 0, drafts = 0;
};

// Executes a record from the bytes of its descriptions, and compares the results of every step. `engine` gives its weights and its backend
// alone.
class Replay {
 public:
  Replay(const Engine& engine, std::vector<KvLayout> layouts)
      : state_(parts_of(engine)), pages_(std::move(layouts)),
        executor_(state_.model, *state_.backend, pages_) {}

  void run(const std::vector<RecordedStep>& record) {
    for (std::size_t i = 0; i < record.size(); ++i) {
      INFO("step " << i << " of " << record.size());
      const RecordedStep& one = record[i];
      if (!one.succeeded) must(pages_.copy(one.kind == RecordedStep::Kind::move ? one.move.copies : one.step.copies));
      else if (one.kind == RecordedStep::Kind::step) compute(one);
      else if (one.kind == RecordedStep::Kind::guess) guess(one);
      else must(executor_.move(through_bytes(one.move)));
      covered.moves += one.kind == RecordedStep::Kind::move ? 1 : 0;
      covered.copies += one.step.copies.size() + one.move.copies.size();
      for (const detail::SequencePages& sequence : one.step.pages.sequences) covered.drafts += sequence.slots.drafts;
    }
  }
  std::size_t compared = 0;  // rows
  Covered covered;

 private:
  void compute(const RecordedStep& one) {
    std::vector<const float*> embeddings;
    for (const auto& values : one.embeddings) embeddings.push_back(values.data());
    StepResults results;
    ResultsSink sink(state_.model, one.step, results);
    must(executor_.execute(through_bytes(one.step), {.embeddings = embeddings}, sink, {}));
    CHECK(results == one.results);
    compared += results.values.size() + results.tokens.size();
    covered.embeddings += embeddings.size();
    covered.draws += one.step.draws.size();
    covered.votes += results.votes.size();
    for (const detail::DescribedRow& row : one.step.rows) covered.branches += row.branches;
  }
  void guess(const RecordedStep& one) {
    std::vector<float> hidden = one.hidden_before, logits(one.logits.size());
    must(executor_.guess(through_bytes(one.step), hidden, logits, {}));
    CHECK(same_bits(hidden, one.hidden_behind));
    CHECK(same_bits(logits, one.logits));
    ++compared;
    ++covered.guesses;
  }

  EngineParts state_;
  NamedPages pages_;
  detail::BackendExecutor executor_;
};

}  // namespace tessera::test
