#include "ranks/processes/rank_steps.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/guard.hpp"
#include "ranks/processes/rank_messages.hpp"

namespace tessera::detail {

namespace {

Error senseless(std::string_view what) { return make_error(ErrorCode::device_error, "rank 0 has sent {} that makes no sense", what); }

}  // namespace

bool RankSteps::is_sound(const StepPages& pages, Writes writes) const noexcept {
  std::size_t at = 0;
  for (const SequencePages& one : pages.sequences) {
    if (one.layout >= pages_.layouts()) return false;
    const std::size_t groups = pages_.first_layout(one.layout).groups.size(), n = pages.ids.size();
    if (one.groups != groups || one.first != at || one.size > n - at || one.pages > n || one.slots.pages > n || one.slots.drafts > n) return false;
    const bool has_state = writes == Writes::states && pages_.first_layout(one.layout).has_state();
    if (one.writes_states != has_state || (!has_state && one.slots.pages + one.slots.drafts != 0)) return false;
    if (one.size != groups * one.pages + one.slots.pages + one.slots.drafts) return false;
    at += one.size;
  }
  return at == pages.ids.size();
}

// Returns whether all pages exist that a row at `position` reads or writes.
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
  if (step.rows.empty() || step.rows.size() > step_rows_ || !is_sound(step.pages, Writes::states)) return false;
  if (step.first_layer > step.last_layer || step.last_layer > model_.spec.n_layers()) return false;
  for (const DescribedRow& row : step.rows) {
    const bool has_embedding = row.embedding != kNoEmbedding;
    if (row.token < 0 || static_cast<std::uint64_t>(row.token) >= model_.spec.vocab_size || (has_embedding && row.embedding >= embeddings)) return false;
    if (row.sequence >= sequences || row.branches >= sequences - row.sequence || (row.votes && !votes_)) return false;
    if (row.first_adapter > step.adapters.size() || row.n_adapters > step.adapters.size() - row.first_adapter) return false;
    if (row.output > RowOutput::scores || row.output == RowOutput::token || row.position >= model_.spec.context || (model_.spec.n_segments != 0 && row.segment >= model_.spec.n_segments)) return false;
    for (std::uint32_t i = 0; i <= row.branches; ++i) {
      if (!has_pages(step.pages, step.pages.sequences[row.sequence + i], row.position)) return false;
    }
  }
  return step.draws.empty();  // rank 0 draws
}

Status RankSteps::forget(std::span<const std::byte> message) {
  Forget which;
  if (!read_message(message, which)) return senseless("a message about an adapter");
  adapters_.forget(which.adapter);
  return {};
}

// Sends the votes of this rank's heads to rank 0; if the step failed on this rank, sends a refusal instead. Rank 0 waits for this answer
// only if the step succeeded on rank 0. Otherwise it discards the answer.
Status RankSteps::send_votes(const Status& done) {
  reply_.clear();
  ByteWriter writer(reply_);
  writer.number(MessageKind::reply);
  if (done) sink_.write(writer);
  else write_message(Refusal{.why = done.error().text(), .code = static_cast<std::int32_t>(done.error().code())}, reply_);
  return ranks_.send(0, reply_);
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
  weights_.clear();
  for (const DescribedAdapter& one : step_.adapters) {
    weights_.push_back(adapters_.find(one.content));
    if (weights_.back() == nullptr) return senseless("a step with an adapter that was not given");
  }
  sink_.begin(step_);
  return executor_.execute(step_, {.embeddings = embeddings_, .adapters = weights_}, sink_, {});
}

Status RankSteps::move(std::span<const std::byte> message) {
  ByteReader reader(message);
  MessageKind kind{};
  bool went_on = false;
  reader.number(kind);
  reader.number(went_on);
  each_number(reader, move_);
  const bool is_whole = reader.is_at_end() && move_.pages.sequences.size() == 1 && is_sound(move_.pages, Writes::states);
  if (!is_whole || move_.to >= move_.from) return senseless("a move");
  const SequencePages& of = move_.pages.sequences.front();
  const KvLayout& layout = pages_.first_layout(of.layout);
  const std::uint64_t room = of.pages * layout.page_tokens;
  if (move_.from > room || move_.count > room - move_.from || (!move_.first.empty() && move_.first.size() != layout.groups.size())) return senseless("a move");
  return executor_.move(move_);
}

Status RankSteps::read_or_write(std::span<const std::byte> message, std::vector<std::byte>& reply) {
  ByteReader reader(message);
  MessageKind kind{};
  bool went_on = false;
  reader.number(kind);
  reader.number(went_on);
  part_.clear();
  each_number(reader, part_);
  const bool is_whole = reader.is_sound() && part_.pages.sequences.size() == 1 && is_sound(part_.pages, Writes::no_states);
  if (!is_whole || part_.layer >= model_.spec.n_layers()) return senseless("a question about pages");
  TESSERA_TRY_STATUS(pages_.copy(part_.copies));
  const SequencePages& of = part_.pages.sequences.front();
  OwnPages::ByteRange part = pages_.part_of(of.layout, part_.layer);
  if (part.size == 0) return {};
  const KvLayout& layout = pages_.first_layout(of.layout);
  const std::size_t group = layout.layers[part_.layer].group;
  if (layout.groups[group].is_recurrent()) {
    if (part_.at > part.size || part_.bytes > part.size - part_.at) return senseless("a question about a state");
    part = {.offset = part.offset + part_.at, .size = part_.bytes};
  }
  if (part_.first_page > part_.end_page || part_.end_page > of.pages) return senseless("a question about pages");
  const std::uint64_t n = part_.end_page - part_.first_page;
  const auto ids = part_.pages.ids_of(of).subspan(group * of.pages + part_.first_page, n);
  if (std::ranges::find(ids, kNoPage) != ids.end()) return senseless("a question about pages that are not there");
  const bool writes = kind == MessageKind::write_pages;
  const auto bytes = reader.take(writes ? n * part.size : 0);
  if (!reader.is_at_end()) return senseless("pages");
  if (!writes) reply.reserve(reply.size() + n * part.size);
  TESSERA_TRY_STATUS(pages_.find(part_.pages, addresses_));
  std::byte* const* table = addresses_.views().front().pages[group];
  ByteWriter out(reply);
  for (std::uint64_t i = 0; i < n; ++i) {
    std::byte* at = table[part_.first_page + i] + part.offset;
    if (writes) std::memcpy(at, bytes.data() + i * part.size, part.size);
    else out.add({at, part.size});
  }
  return {};
}

Status RankSteps::answer(std::span<const std::byte> message) {
  reply_.clear();
  ByteWriter(reply_).number(MessageKind::reply);
  const std::uint64_t copies = pages_.copy_calls();
  const Status done = guard([&] { return kind_of(message) == MessageKind::adapter ? adapters_.take(message) : read_or_write(message, reply_); });
  if (!done && kind_of(message) != MessageKind::adapter && pages_.copy_calls() == copies) pages_.lose(done.error());
  if (!done) write_message(Refusal{.why = done.error().text(), .code = static_cast<std::int32_t>(done.error().code())}, reply_);
  return ranks_.send(0, reply_);
}

Status RankSteps::execute(std::span<const std::byte> message, std::uint64_t step) {
  const MessageKind kind = kind_of(message);
  if (kind == MessageKind::layout) return guard([&] { return add_layout(message); });
  if (kind == MessageKind::forget) return forget(message);
  const bool asks = kind == MessageKind::read_pages || kind == MessageKind::write_pages || kind == MessageKind::adapter;
  if (kind != MessageKind::step && kind != MessageKind::move && !asks) return senseless("a message");
  // `went_on`: whether rank 0's last step succeeded. If it did, but the step failed on this rank, then rank 0 did not learn of the failure
  // in time. In this case the pages of rank 0 and of this rank differ, and this rank must not go on.
  bool went_on = false;
  ByteReader reader(message.subspan(sizeof kind));
  reader.number(went_on);
  if (went_on && has_failed_) return make_error(ErrorCode::device_error, "rank 0 has gone on with a step that failed here");
  ranks_.begin_step(step);
  if (asks) return guard([&] { return answer(message); });
  ++steps_;
  const std::uint64_t copies = pages_.copy_calls();
  const Status done = guard([&] { return kind == MessageKind::step ? compute(message) : move(message); });
  has_failed_ = !done;
  if (!done && pages_.copy_calls() == copies) pages_.lose(done.error());
  if (!done) ranks_.stop(done.error());
  if (!ranks_.broken()) return ranks_.broken();
  return kind == MessageKind::step && (!done || sink_.any()) ? guard([&] { return send_votes(done); }) : Status();
}

}  // namespace tessera::detail
