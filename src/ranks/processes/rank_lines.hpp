// The connections of one rank to all others, as streams of bytes: sockets, or a transport of the program that uses the library.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/extend/backend/rank_transport.hpp>

#include "os/socket.hpp"

namespace tessera::detail {

class RankLines {
 public:
  // The number of bytes that a call has moved. 0: none can be moved now; or the other rank is gone, and then `gone` has the reason.
  struct Moved {
    std::size_t bytes = 0;
    std::string gone = {};
    bool was_closed = false;  // the other rank has closed the connection
  };
  struct Awaited {
    bool to_send = false, to_receive = false;  // what to wait for
  };

  virtual ~RankLines() = default;
  [[nodiscard]] virtual bool is_open(std::uint32_t rank) const noexcept = 0;
  virtual Moved send(std::uint32_t rank, std::span<const std::byte> bytes) = 0;
  virtual Moved receive(std::uint32_t rank, std::span<std::byte> bytes) = 0;
  virtual void close(std::uint32_t rank) noexcept = 0;
  // Waits until a rank's connection is ready for what `lines` asks (to send bytes, to receive bytes), or until `timeout` has passed.
  // `lines` has an entry for each rank.
  virtual Status wait(std::span<const Awaited> lines, std::chrono::milliseconds timeout) = 0;
};

class SocketLines final : public RankLines {
 public:
  // `sockets`: one for each rank. The socket at the rank's own index, and sockets of ranks without a connection, are closed.
  explicit SocketLines(std::vector<os::Socket> sockets) noexcept : sockets_(std::move(sockets)) {}
  explicit SocketLines(std::uint32_t ranks) : sockets_(ranks) {}

  void set(std::uint32_t rank, os::Socket socket) noexcept { sockets_[rank] = std::move(socket); }
  // Hands the connection to a rank over to the caller.
  [[nodiscard]] os::Socket take(std::uint32_t rank) noexcept { return std::move(sockets_[rank]); }

  [[nodiscard]] bool is_open(std::uint32_t rank) const noexcept override { return sockets_[rank].is_open(); }
  Moved send(std::uint32_t rank, std::span<const std::byte> bytes) override;
  Moved receive(std::uint32_t rank, std::span<std::byte> bytes) override;
  void close(std::uint32_t rank) noexcept override { sockets_[rank].close(); }
  Status wait(std::span<const Awaited> lines, std::chrono::milliseconds timeout) override;

 private:
  std::vector<os::Socket> sockets_;
  std::vector<os::Awaited> awaited_;
};

// The connections through a host's transport. After an error of a rank calls only close() for this rank, and nothing after close().
class TransportLines final : public RankLines {
 public:
  explicit TransportLines(std::shared_ptr<RankTransport> transport);
  ~TransportLines() override;

  [[nodiscard]] bool is_open(std::uint32_t rank) const noexcept override { return lines_[rank] == Line::open; }
  Moved send(std::uint32_t rank, std::span<const std::byte> bytes) override;
  Moved receive(std::uint32_t rank, std::span<std::byte> bytes) override;
  void close(std::uint32_t rank) noexcept override;
  Status wait(std::span<const Awaited> lines, std::chrono::milliseconds timeout) override;

 private:
  enum class Line : std::uint8_t { open, failed, closed };
  Moved moved(std::uint32_t rank, const Result<std::size_t>& by_transport, std::size_t most);

  std::shared_ptr<RankTransport> transport_;
  std::vector<Line> lines_;
};

}  // namespace tessera::detail
