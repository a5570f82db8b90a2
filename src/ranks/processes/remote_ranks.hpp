// The step executor of rank 0 if the ranks are processes. Sends each step to the other ranks and executes it together with them.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "model/step/step_executor.hpp"
#include "ranks/processes/layer_pages.hpp"
#include "ranks/model_division.hpp"
#include "ranks/rank_backend.hpp"
#include "ranks/processes/process_ranks.hpp"
#include "ranks/vote_sink.hpp"

namespace tessera::detail {

class RemoteRanks final : public StepExecutor {
 public:
  // `model` is rank 0's part. `backend`, `pools` and `pages` belong to the engine; the pools must keep_copies().
  RemoteRanks(std::unique_ptr<ProcessRanks> ranks, std::unique_ptr<Model> model, RankBackend& backend, KvPools pools, PageMemory& pages,
              std::chrono::milliseconds timeout);

  Status execute(const StepDescription& step, const StepInputs& inputs, OutputSink& sink, const std::stop_token& stop) noexcept override;
  Status guess(const StepDescription& step, std::span<float> hidden, std::span<float> logits, const std::stop_token& stop) noexcept override;
  Status reserve(const StepPages& pages) noexcept override;
  Status move(const MoveDescription& move) noexcept override;
  // Reads the bytes that each other rank has of a layer, to replies[rank]. Sets `of.copies` to the copies of pages that the pools here have
  // made since the last message: the other ranks must make these copies before they read. Errors: device_error, a rank is gone or refuses;
  // out_of_memory.
  Status read(LayerPages& of, std::vector<std::vector<std::byte>>& replies) noexcept;
  // Writes a layer's bytes to the pages of the other ranks. bytes[rank]: the bytes of the rank's heads.
  Status write(LayerPages& of, std::span<const std::vector<std::byte>> bytes) noexcept;
  // Sends one change of an adapter to the other ranks. `change`: the message without its kind. Errors: those of read().
  Status give_adapter(std::span<const std::byte> change) noexcept;
  // Makes the other ranks drop an adapter before the next step. Any thread may call this function. (The other functions need the engine's
  // turn.)
  void forget_adapter(const Hash128& content) noexcept;
  [[nodiscard]] const KvPools& pools() const noexcept { return pools_; }

 private:
  // Returns the error after which nothing can be sent any more; success if there was none.
  [[nodiscard]] Status ready() const noexcept;
  // Begins a step and sends its message to all other ranks. First sends the layouts that the other ranks do not know yet. If `write` has
  // the form write(writer): it writes one message for all ranks. If it has the form write(writer, rank): it writes a message for each rank.
  // `copies`: the copies of pages that the message tells the ranks to make. If `copies` is not empty and the message cannot be sent, all
  // later calls fail.
  template <class Write>
  Status send(const StepPages& pages, std::span<const PageCopy> copies, Write write) noexcept;
  Status send_to(std::uint32_t rank) noexcept;
  Status send_to_all() noexcept;
  Status send_forgotten();
  // Adds the votes of the other ranks' heads to the sink's.
  Status take_votes(const StepDescription& step, OutputSink& sink) noexcept;
  // Waits for each rank's reply to the last message, at most `timeout` in all. Calls take(rank, bytes) for each reply. Errors: the error of
  // a rank that refuses; those of take().
  template <class Take>
  Status take_replies(std::chrono::milliseconds timeout, const Take& take) noexcept;
  // Ends a step. If it has failed here, tells the other ranks.
  Status end(Status status) noexcept;

  std::chrono::milliseconds timeout_;
  std::unique_ptr<ProcessRanks> ranks_;
  std::unique_ptr<Model> model_;
  KvPools pools_;
  BackendExecutor executor_;
  std::size_t layouts_ = 0;  // number of layouts that the other ranks know
  std::vector<std::byte> message_;
  VoteSink votes_;  // the votes in another rank's reply
  std::mutex forgotten_mutex_;
  std::vector<Hash128> forgotten_;  // adapters that the other ranks must drop
  bool has_gone_on_ = true;  // whether the last step succeeded here
  bool has_sent_ = false;    // whether some rank has got a part of the present message
  Status failed_ = {};       // set if the other ranks may lack changes of a step: then all later calls fail
};

}  // namespace tessera::detail
