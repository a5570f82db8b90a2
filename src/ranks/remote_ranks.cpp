#include "ranks/remote_ranks.hpp"

#include "core/error.hpp"
#include "core/guard.hpp"
#include "kv/pages/pools_state.hpp"
#include "ranks/rank_messages.hpp"

namespace tessera::detail {

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

RemoteRanks::RemoteRanks(std::unique_ptr<SocketRanks> ranks, std::unique_ptr<Model> model, RankBackend& backend, KvPools pools, PageMemory& pages)
    : ranks_(std::move(ranks)), model_(std::move(model)), pools_(std::move(pools)), executor_(*model_, backend, pages) {}

Status RemoteRanks::send_to_all() noexcept {
  for (std::uint32_t rank = 1; rank < ranks_->ranks(); ++rank) TESSERA_TRY_STATUS(ranks_->send(rank, message_));
  return {};
}

template <class Write>
Status RemoteRanks::send(const StepPages& pages, Write write) noexcept {
  if (!failed_) return failed_;
  if (!ranks_->broken()) return ranks_->broken();
  ranks_->begin_step(ranks_->step() + 1);
  const Status sent = guard([&]() -> Status {
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
    message_.clear();
    ByteWriter writer(message_);
    write(writer);
    return send_to_all();
  });
  // Copies of pages in the step may be missing elsewhere.
  if (!sent) failed_ = make_error(ErrorCode::device_error, "a step could not be sent to the ranks ({}); load the engine again", sent.error().message());
  return failed_;
}

Status RemoteRanks::end(Status status) noexcept {
  has_gone_on_ = status.has_value();
  if (!status) ranks_->stop(status.error());
  return status;
}

Status RemoteRanks::execute(const StepDescription& step, const StepInputs& inputs, OutputSink& sink, const std::stop_token& stop) noexcept {
  TESSERA_TRY_STATUS(send(step.pages, [&](ByteWriter& writer) {
    writer.number(MessageKind::step);
    writer.number(has_gone_on_);
    each_number(writer, step);
    writer.number(std::uint64_t{inputs.embeddings.size()});
    for (const float* values : inputs.embeddings) writer.add(std::as_bytes(std::span(values, model_->spec.d_model)));
  }));
  return end(executor_.execute(step, inputs, sink, stop));
}

Status RemoteRanks::guess(const StepDescription&, std::span<float>, std::span<float>, const std::stop_token&) noexcept {
  return make_error(ErrorCode::internal, "an engine of several ranks has no draft heads");
}

Status RemoteRanks::reserve(const StepPages& pages) noexcept { return executor_.reserve(pages); }

Status RemoteRanks::move(const MoveDescription& move) noexcept {
  TESSERA_TRY_STATUS(send(move.pages, [&](ByteWriter& writer) {
    writer.number(MessageKind::move);
    writer.number(has_gone_on_);
    each_number(writer, move);
  }));
  return end(executor_.move(move));
}

}  // namespace tessera::detail
