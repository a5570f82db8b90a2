// Ranks that are processes, on this machine or others. Each pair of ranks has a connection.
//
// A rank that stops a step tells all other ranks, which leave the step too. Frames of that step which arrive later are thrown away. If a
// connection ends, or a rank does not answer in time or sends an invalid frame, all later calls fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "ranks/communicator.hpp"
#include "ranks/processes/frame.hpp"
#include "ranks/processes/rank_lines.hpp"

namespace tessera::detail {

class ProcessRanks final : public Communicator {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;  // the largest frame, in bytes

  // `addresses` has one entry for each rank, for messages. A frame of more than `most_bytes` breaks the connection.
  ProcessRanks(std::uint32_t rank, std::unique_ptr<RankLines> lines, std::vector<std::string> addresses, std::chrono::milliseconds timeout,
               std::uint64_t most_bytes = kMostBytes);

  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t ranks() const noexcept override { return static_cast<std::uint32_t>(links_.size()); }
  // Errors: cancelled or out_of_memory, a rank has stopped the step with this error; device_error, a rank has failed, is gone, does not
  // answer in time or has sent an invalid frame.
  Status gather(std::span<const std::byte> mine, std::span<const std::span<std::byte>> parts) noexcept override;
  void stop() noexcept override { stop(make_stopped()); }
  // Stops the step with an error, which the other ranks' calls return.
  void stop(const Error& error) noexcept;

  [[nodiscard]] const std::string& address(std::uint32_t rank) const noexcept { return links_[rank].address; }

  // Sets the time for which a rank may be silent in a step.
  void set_timeout(std::chrono::milliseconds timeout) noexcept { timeout_ = timeout; }
  // Begins a step. All ranks begin it with the same number, which must be larger than that of the step before.
  void begin_step(std::uint64_t step) noexcept;
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  // Sends a message to a rank, which calls receive(). Returns when all bytes were handed to the connection.
  Status send(std::uint32_t to, std::span<const std::byte> message) noexcept;
  // Waits for the next message of the rank `from`, at most `timeout` in all. Writes the message's bytes to `message`, and the number of the
  // sender's step to `step`. Errors: those of gather(); cancelled, `stop` was requested.
  Status receive(std::uint32_t from, std::vector<std::byte>& message, std::uint64_t& step, std::chrono::milliseconds timeout,
                 const std::stop_token& stop = {}) noexcept;
  // Waits for one message of every other rank, in any order, at most `timeout` in all. Calls take(rank, bytes) for each; an error of take()
  // ends the waiting.
  Status receive_from_all(std::chrono::milliseconds timeout, const std::stop_token& stop,
                          const std::function<Status(std::uint32_t, std::span<const std::byte>)>& take) noexcept;
  // Returns whether rank 0 has closed its connection, which means that the engine is gone.
  [[nodiscard]] bool engine_has_gone() const noexcept { return engine_has_gone_; }
  // Returns the error after which all calls fail; success if there was none.
  [[nodiscard]] const Status& broken() const noexcept { return broken_; }

 private:
  // The moment from which `timeout` counts: the last byte from a rank that the call waits for, or the beginning of the call.
  enum class Patience : std::uint8_t { from_last_byte, in_all };

  struct Link {
    std::string address;
    std::vector<std::byte> out;  // frames to be sent
    std::size_t sent = 0;        // bytes of `out`
    FrameHeader header;          // header of the frame that is being received
    std::size_t header_bytes = 0, body_bytes = 0;  // bytes of header and body that were received
    bool is_whole = false;       // the frame is complete, and no call has taken it
    std::vector<std::byte> body;
    bool is_wanted = false;      // a call waits for a frame of this rank
  };

  [[nodiscard]] static Error make_stopped();
  Status break_with(Error error) noexcept;
  [[nodiscard]] Error gone(std::uint32_t rank, std::string_view why) const;
  void queue(Link& link, FrameKind kind, std::span<const std::byte> bytes);
  // Sends all queued frames, and receives until one frame has come from each rank from which the call wants one (Link::is_wanted). Calls
  // arrived(rank) for each such frame. Meanwhile reads the connections of all ranks, so that no rank is blocked while it sends to this
  // rank. Keeps frames that belong to a later call.
  template <class Arrived>
  Status run(std::chrono::milliseconds timeout, Patience patience, const std::stop_token& stop, const Arrived& arrived) noexcept;
  Status send_some(std::uint32_t rank);
  Status send_queued(std::chrono::milliseconds timeout);
  // Reads until a frame of the rank is complete, or until nothing more has arrived.
  Status read_frame(std::uint32_t rank);
  template <class Arrived>
  Status receive_some(std::uint32_t rank, const Arrived& arrived);
  Status check_header(std::uint32_t rank) const;

  std::uint32_t rank_;
  std::unique_ptr<RankLines> lines_;
  std::vector<Link> links_;
  std::uint64_t moved_ = 0;  // bytes that were sent, or received from ranks that a call waits for. If the number has grown, the timeout starts anew
  std::chrono::milliseconds timeout_;
  std::uint64_t most_bytes_;
  bool engine_has_gone_ = false;
  std::uint64_t step_ = 0, number_ = 0;
  bool in_step_ = false;   // false: between two steps
  Status stopped_ = {};  // the error with which this step was stopped
  Status broken_ = {};
};

}  // namespace tessera::detail
