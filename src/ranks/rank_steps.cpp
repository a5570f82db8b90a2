#include "ranks/rank_steps.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/guard.hpp"
#include "ranks/rank_messages.hpp"

namespace tessera::detail {

namespace {

Error senseless(std::string_view what) { return make_error(ErrorCode::device_error, "rank 0 has sent {} that makes no sense", what); }

// Takes no outputs: rank 0 hands them out.
class NoOutputs final : public OutputSink {
 public:
  std::span<float> destination(std::size_t) override { return {}; }
  void done(std::size_t) override {}
};

}  // namespace

bool RankSteps::is_sound(const StepPages& pages, std::span<const PageCopy>) const noexcept {
  std::size_t at = 0;
  for (const SequencePages& one : pages.sequences) {
    if (one.layout >= pages_.layouts()) return false;
    const std::size_t groups = pages_.first_layout(one.layout).groups.size(), n = pages.ids.size();
    if (one.groups != groups || one.first != at || one.size > n - at || one.pages > n || one.slots.pages > n || one.slots.drafts > n) return false;
    const bool has_state = pages_.first_layout(one.layout).has_state();
    if (one.writes_states != has_state || (!has_state && one.slots.pages + one.slots.drafts != 0)) return false;
    if (one.size != groups * one.pages + one.slots.pages + one.slots.drafts) return false;
    at += one.size;
  }
  return at == pages.ids.size();
}

// Returns whether all pages are there that a row at `position` reads or writes.
bool RankSteps::has_pages(const StepPages& pages, const SequencePages& of, std::uint64_t position) const noexcept {
  const KvLayout& layout = pages_.first_layout(of.layout);
  const std::span<const PageId> ids = pages.ids_of(of);
  const std::uint64_t last = position / layout.page_tokens;
  for (std::size_t group = 0; group < layout.groups.size(); ++group) {
    if (layout.groups[group].is_recurrent()) continue;
    if (last >= of.pages) return false;
    const std::uint64_t window = layout.groups[group].window;
    const std::uint64_t first = window == 0 || window > position ? 0 : (position - window + 1) / layout.page_tokens;
    const auto seen = ids.subspan(group * of.pages + first, last - first + 1);
    if (std::ranges::find(seen, kNoPage) != seen.end()) return false;
  }
  return true;
}

bool RankSteps::is_sound(const StepDescription& step, std::size_t embeddings) const noexcept {
  const std::size_t sequences = step.pages.sequences.size();
  if (step.rows.empty() || step.rows.size() > step_rows_ || !step.adapters.empty() || !is_sound(step.pages, step.copies)) return false;
  if (step.first_layer > step.last_layer || step.last_layer > model_.spec.n_layers()) return false;
  for (const DescribedRow& row : step.rows) {
    const bool has_embedding = row.embedding != kNoEmbedding;
    if (row.token < 0 || static_cast<std::uint64_t>(row.token) >= model_.spec.vocab_size || (has_embedding && row.embedding >= embeddings)) return false;
    if (row.sequence >= sequences || row.branches >= sequences - row.sequence || row.votes || row.n_adapters != 0) return false;
    if (row.output > RowOutput::scores || row.output == RowOutput::token || row.position >= model_.spec.context || (model_.spec.n_segments != 0 && row.segment >= model_.spec.n_segments)) return false;
    for (std::uint32_t i = 0; i <= row.branches; ++i) {
      if (!has_pages(step.pages, step.pages.sequences[row.sequence + i], row.position)) return false;
    }
  }
  return step.draws.empty();  // rank 0 draws
}

Status RankSteps::add_layout(std::span<const std::byte> message) {
  LayoutMessage layout;
  if (!read_message(message, layout)) return senseless("a layout");
  TESSERA_TRY(KvLayout first, make_kv_layout(layout.layers, layout.dtype, layout.page_tokens));
  return pages_.add_layout(std::move(first));
}

Status RankSteps::compute(std::span<const std::byte> message) {
  ByteReader reader(message);
  MessageKind kind{};
  bool went_on = false;
  reader.number(kind);
  reader.number(went_on);
  step_.clear();
  each_number(reader, step_);
  std::uint64_t n = 0;
  reader.number(n);
  const std::size_t width = model_.spec.d_model;
  if (n > step_rows_) return senseless("a step");
  const auto bytes = reader.take(n * width * sizeof(float));
  if (!reader.is_at_end() || !is_sound(step_, n)) return senseless("a step");
  values_.resize(n * width);
  if (!bytes.empty()) std::memcpy(values_.data(), bytes.data(), bytes.size());
  embeddings_.clear();
  for (std::size_t i = 0; i < n; ++i) embeddings_.push_back(values_.data() + i * width);
  NoOutputs none;
  return executor_.execute(step_, {.embeddings = embeddings_}, none, {});
}

Status RankSteps::move(std::span<const std::byte> message) {
  ByteReader reader(message);
  MessageKind kind{};
  bool went_on = false;
  reader.number(kind);
  reader.number(went_on);
  each_number(reader, move_);
  const bool is_whole = reader.is_at_end() && move_.pages.sequences.size() == 1 && is_sound(move_.pages, move_.copies);
  if (!is_whole || move_.to >= move_.from) return senseless("a move");
  const SequencePages& of = move_.pages.sequences.front();
  const KvLayout& layout = pages_.first_layout(of.layout);
  const std::uint64_t room = of.pages * layout.page_tokens;
  if (move_.from > room || move_.count > room - move_.from || (!move_.first.empty() && move_.first.size() != layout.groups.size())) return senseless("a move");
  return executor_.move(move_);
}

Status RankSteps::execute(std::span<const std::byte> message, std::uint64_t step) {
  const MessageKind kind = kind_of(message);
  if (kind == MessageKind::layout) return guard([&] { return add_layout(message); });
  if (kind != MessageKind::step && kind != MessageKind::move) return senseless("a message");
  // Rank 0 says whether it went on with its last step. If that step failed here, rank 0 did not know this in time, so its pages are not
  // those of this rank.
  bool went_on = false;
  ByteReader reader(message.subspan(sizeof kind));
  reader.number(went_on);
  if (went_on && has_failed_) return make_error(ErrorCode::device_error, "rank 0 has gone on with a step that failed here");
  ranks_.begin_step(step);
  ++steps_;
  const std::uint64_t copies = pages_.copy_calls();
  const Status done = guard([&] { return kind == MessageKind::step ? compute(message) : move(message); });
  has_failed_ = !done;
  if (!done && pages_.copy_calls() == copies) pages_.lose(done.error());
  if (!done) ranks_.stop(done.error());
  return ranks_.broken();
}

}  // namespace tessera::detail
