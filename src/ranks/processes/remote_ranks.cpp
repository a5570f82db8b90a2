#include "ranks/processes/remote_ranks.hpp"

#include <algorithm>
#include <type_traits>

#include "core/error.hpp"
#include "core/guard.hpp"
#include "core/printable.hpp"
#include "kv/pages/pools_state.hpp"
#include "ranks/processes/rank_messages.hpp"

namespace tessera::detail {

namespace {

constexpr std::chrono::hours kAdapterTime{1};  // limit for the time that a rank takes to load a change of an adapter

}  // namespace

LayoutMessage message_of(const KvLayout& layout) {
  LayoutMessage message{.dtype = layout.dtype, .page_tokens = layout.page_tokens, .layers = {}};
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    const KvLayerLayout& layer = layout.layer(i);
    const std::size_t first = layout.first_layer_at(layout.layers[i]);
    KvLayerNeeds& needs = message.layers.emplace_back(KvLayerNeeds{.shape = layer.shape, .window = layout.group_of(i).window, .dtype = layer.dtype});
    if (first != i) needs.shares = static_cast<std::uint32_t>(first);
    if (layer.shape.state_bytes != 0) needs.dtype = DType::automatic;
  }
  return message;
}

RemoteRanks::RemoteRanks(std::unique_ptr<ProcessRanks> ranks, std::unique_ptr<Model> model, RankBackend& backend, KvPools pools, PageMemory& pages,
                         std::chrono::milliseconds timeout)
    : timeout_(timeout), ranks_(std::move(ranks)), model_(std::move(model)), pools_(std::move(pools)), executor_(*model_, backend, pages) {}

Status RemoteRanks::ready() const noexcept { return failed_ ? ranks_->broken() : failed_; }

Status RemoteRanks::send_to(std::uint32_t rank) noexcept {
  has_sent_ = true;
  return ranks_->send(rank, message_);
}

Status RemoteRanks::send_to_all() noexcept {
  for (std::uint32_t rank = 1; rank < ranks_->ranks(); ++rank) TESSERA_TRY_STATUS(send_to(rank));
  return {};
}

Status RemoteRanks::send_forgotten() {
  std::vector<Hash128> forgotten;
  {
    const std::lock_guard lock(forgotten_mutex_);
    forgotten.swap(forgotten_);
  }
  for (const Hash128& content : forgotten) {
    write_message(Forget{.adapter = content}, message_);
    TESSERA_TRY_STATUS(send_to_all());
  }
  return {};
}

void RemoteRanks::forget_adapter(const Hash128& content) noexcept {
  (void)guard([&]() -> Status {  // without memory the ranks keep the adapter, which does no harm
    const std::lock_guard lock(forgotten_mutex_);
    forgotten_.push_back(content);
    return {};
  });
}

template <class Write>
Status RemoteRanks::send(const StepPages& pages, std::span<const PageCopy> copies, Write write) noexcept {
  TESSERA_TRY_STATUS(ready());
  ranks_->begin_step(ranks_->step() + 1);
  has_sent_ = false;
  const Status sent = guard([&]() -> Status {
    TESSERA_TRY_STATUS(send_forgotten());
    for (const SequencePages& sequence : pages.sequences) {
      while (layouts_ <= sequence.layout) {
        KvLayout layout;
        {
          const std::lock_guard lock(pools_.state()->mutex);
          layout = pools_.state()->layouts[layouts_]->layout;
        }
        write_message(message_of(layout), message_);
        TESSERA_TRY_STATUS(send_to_all());
        ++layouts_;
      }
    }
    if constexpr (std::is_invocable_v<Write, ByteWriter&>) {
      message_.clear();
      ByteWriter writer(message_);
      write(writer);
      return send_to_all();
    } else {
      for (std::uint32_t rank = 1; rank < ranks_->ranks(); ++rank) {
        message_.clear();
        ByteWriter writer(message_);
        write(writer, rank);
        TESSERA_TRY_STATUS(send_to(rank));
      }
      return {};
    }
  });
  // After this failure no further step can be sent: perhaps only some ranks have the message, or other ranks have not made the copies of
  // pages that the message lists.
  if (!sent && (has_sent_ || !copies.empty())) {
    failed_ = make_error(ErrorCode::device_error, "a step could not be sent to the ranks ({}); load the engine again", sent.error().message());
  }
  return failed_ ? sent : failed_;
}

Status RemoteRanks::end(Status status) noexcept {
  has_gone_on_ = status.has_value();
  if (!status) ranks_->stop(status.error());
  return status;
}

Status RemoteRanks::execute(const StepDescription& step, const StepInputs& inputs, OutputSink& sink, const std::stop_token& stop) noexcept {
  TESSERA_TRY_STATUS(send(step.pages, step.copies, [&](ByteWriter& writer) {
    writer.number(MessageKind::step);
    writer.number(has_gone_on_);
    each_number(writer, step);
    writer.number(std::uint64_t{inputs.embeddings.size()});
    for (const float* values : inputs.embeddings) writer.add(std::as_bytes(std::span(values, model_->spec.d_model)));
  }));
  const Status done = executor_.execute(step, inputs, sink, stop);
  const bool votes = done && std::ranges::any_of(step.rows, &DescribedRow::votes);
  return end(votes ? take_votes(step, sink) : done);
}

Status RemoteRanks::guess(const StepDescription&, std::span<float>, std::span<float>, const std::stop_token&) noexcept {
  return make_error(ErrorCode::internal, "an engine of several ranks has no draft heads");
}

Status RemoteRanks::reserve(const StepPages& pages) noexcept { return executor_.reserve(pages); }

Status RemoteRanks::move(const MoveDescription& move) noexcept {
  TESSERA_TRY_STATUS(send(move.pages, move.copies, [&](ByteWriter& writer) {
    writer.number(MessageKind::move);
    writer.number(has_gone_on_);
    each_number(writer, move);
  }));
  return end(executor_.move(move));
}

template <class Take>
Status RemoteRanks::take_replies(std::chrono::milliseconds timeout, const Take& take) noexcept {
  // The first error is kept in `first`, and returned after all ranks have replied. If the wait ended at once, a reply that nobody has read
  // would later be taken for the answer to another message.
  Status first = {};
  TESSERA_TRY_STATUS(guard([&] {
    return ranks_->receive_from_all(timeout, {}, [&](std::uint32_t rank, std::span<const std::byte> bytes) -> Status {
      Refusal refusal;
      Status taken = {};
      if (kind_of(bytes) == MessageKind::reply) {
        taken = guard([&] { return take(rank, bytes.subspan(sizeof(MessageKind))); });
      } else if (read_message(bytes, refusal)) {
        const auto code = static_cast<ErrorCode>(refusal.code) == ErrorCode::out_of_memory ? ErrorCode::out_of_memory : ErrorCode::device_error;
        taken = make_error(code, "rank {} ({}): {}", rank, ranks_->address(rank), printable(refusal.why, 500));
      } else {
        return make_error(ErrorCode::device_error, "rank {} ({}) answers with no message of this version", rank, ranks_->address(rank));
      }
      if (first) first = std::move(taken);
      return {};
    });
  }));
  return first;
}

Status RemoteRanks::take_votes(const StepDescription& step, OutputSink& sink) noexcept {
  return guard([&]() -> Status {
    votes_.begin(step);
    return take_replies(timeout_, [&](std::uint32_t rank, std::span<const std::byte> bytes) -> Status {
      ByteReader reader(bytes);
      if (!votes_.read(reader)) return make_error(ErrorCode::device_error, "rank {} ({}) gives votes that are not the step's", rank, ranks_->address(rank));
      votes_.add_to(sink);
      return {};
    });
  });
}

Status RemoteRanks::read(LayerPages& of, std::vector<std::vector<std::byte>>& replies) noexcept {
  TESSERA_TRY_STATUS(ready());
  TESSERA_TRY_STATUS(guard([&]() -> Status {
    replies.resize(ranks_->ranks());
    return {};
  }));
  take_copies(pools_, of.copies);  // after the allocation, which can fail, so that no copies are lost
  TESSERA_TRY_STATUS(send(of.pages, of.copies, [&](ByteWriter& writer) {
    writer.number(MessageKind::read_pages);
    writer.number(has_gone_on_);
    each_number(writer, of);
  }));
  return take_replies(timeout_, [&](std::uint32_t rank, std::span<const std::byte> bytes) {
    replies[rank].assign(bytes.begin(), bytes.end());
    return Status();
  });
}

Status RemoteRanks::write(LayerPages& of, std::span<const std::vector<std::byte>> bytes) noexcept {
  TESSERA_TRY_STATUS(ready());
  take_copies(pools_, of.copies);
  TESSERA_TRY_STATUS(send(of.pages, of.copies, [&](ByteWriter& writer, std::uint32_t rank) {
    writer.number(MessageKind::write_pages);
    writer.number(has_gone_on_);
    each_number(writer, of);
    writer.add(bytes[rank]);
  }));
  return take_replies(timeout_, [](std::uint32_t rank, std::span<const std::byte> reply) {
    return reply.empty() ? Status() : Status(make_error(ErrorCode::device_error, "rank {} answers with pages that nobody asked for", rank));
  });
}

Status RemoteRanks::give_adapter(std::span<const std::byte> change) noexcept {
  TESSERA_TRY_STATUS(send({}, {}, [&](ByteWriter& writer) {
    writer.number(MessageKind::adapter);
    writer.number(false);  // the place of has_gone_on_ in other messages; an adapter does not depend on the last step
    writer.add(change);
  }));
  // A rank reads its weights again for a change with lengths (DoRA), which takes longer than a step.
  return take_replies(std::max<std::chrono::milliseconds>(timeout_, kAdapterTime), [](std::uint32_t, std::span<const std::byte>) { return Status(); });
}

}  // namespace tessera::detail
