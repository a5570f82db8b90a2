#include "ranks/processes/process_ranks.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/guard.hpp"
#include "core/printable.hpp"

namespace tessera::detail {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStopTime{200};  // the time in which a stopped rank tries to tell the other ranks

// Returns an error as the bytes that are sent: its code and its message.
std::vector<std::byte> bytes_of(const Error& error) {
  const auto code = static_cast<std::uint32_t>(error.code());
  const std::string text = error.text();
  std::vector<std::byte> bytes(sizeof code + text.size());
  std::memcpy(bytes.data(), &code, sizeof code);
  std::memcpy(bytes.data() + sizeof code, text.data(), text.size());
  return bytes;
}

Error error_of(std::uint32_t rank, std::span<const std::byte> bytes) {
  std::uint32_t code = 0;
  if (bytes.size() < sizeof code) return make_error(ErrorCode::device_error, "rank {} has stopped the step", rank);
  std::memcpy(&code, bytes.data(), sizeof code);
  const std::string text = printable(std::string_view(reinterpret_cast<const char*>(bytes.data()) + sizeof code, bytes.size() - sizeof code), 500);
  const auto known = static_cast<ErrorCode>(code);
  if (known == ErrorCode::cancelled) return make_error(ErrorCode::cancelled, "{}", text);
  return make_error(known == ErrorCode::out_of_memory ? known : ErrorCode::device_error, "rank {}: {}", rank, text);
}

}  // namespace

ProcessRanks::ProcessRanks(std::uint32_t rank, std::unique_ptr<RankLines> lines, std::vector<std::string> addresses,
                           std::chrono::milliseconds timeout, std::uint64_t most_bytes)
    : rank_(rank), lines_(std::move(lines)), timeout_(timeout), most_bytes_(most_bytes) {
  links_.resize(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) links_[i].address = std::move(addresses[i]);
}

Error ProcessRanks::make_stopped() { return make_error(ErrorCode::cancelled, "another rank has stopped this step"); }

Error ProcessRanks::gone(std::uint32_t rank, std::string_view why) const {
  return make_error(ErrorCode::device_error, "rank {} ({}) {}; all ranks must be started again", rank, links_[rank].address, why);
}

Status ProcessRanks::break_with(Error error) noexcept {
  broken_ = std::move(error);
  // Try to send the reason to the other ranks. Otherwise they would take this rank for the one that failed.
  (void)guard([&]() -> Status {
    const std::vector<std::byte> bytes = bytes_of(broken_.error());
    for (std::uint32_t i = 0; i < links_.size() && in_step_; ++i) {
      if (i == rank_ || !lines_->is_open(i)) continue;
      queue(links_[i], FrameKind::stop, bytes);
      (void)send_some(i);
    }
    return {};
  });
  for (std::uint32_t i = 0; i < links_.size(); ++i) lines_->close(i);  // so that the other ranks notice
  return broken_;
}

void ProcessRanks::begin_step(std::uint64_t step) noexcept {
  step_ = step;
  number_ = 0;
  stopped_ = {};
  in_step_ = true;
}

void ProcessRanks::queue(Link& link, FrameKind kind, std::span<const std::byte> bytes) {
  if (link.sent == link.out.size()) {
    link.out.clear();
    link.sent = 0;
  }
  FrameHeader header{.kind = kind, .step = step_, .number = number_, .bytes = bytes.size()};
  header.hash = hash_of(header, bytes);
  const auto head = std::as_bytes(std::span(&header, 1));
  link.out.insert(link.out.end(), head.begin(), head.end());
  link.out.insert(link.out.end(), bytes.begin(), bytes.end());
}

void ProcessRanks::stop(const Error& error) noexcept {
  if (!stopped_ || !broken_) return;  // the other ranks know the error already
  const Status queued = guard([&]() -> Status {
    const std::vector<std::byte> bytes = bytes_of(error);
    for (std::uint32_t i = 0; i < links_.size(); ++i) {
      if (i != rank_) queue(links_[i], FrameKind::stop, bytes);
    }
    stopped_ = error;
    return send_queued(kStopTime);  // the next call sends the rest
  });
  if (!queued) (void)break_with(queued.error());
}

// Sends queued frames, for at most `timeout`.
Status ProcessRanks::send_queued(std::chrono::milliseconds timeout) {
  const SteadyClock::time_point end = SteadyClock::now() + timeout;
  std::vector<RankLines::Awaited> awaited(links_.size());
  for (;;) {
    bool has_more = false;
    for (std::uint32_t i = 0; i < links_.size(); ++i) {
      awaited[i] = {};
      if (i == rank_ || !lines_->is_open(i)) continue;
      TESSERA_TRY_STATUS(send_some(i));
      awaited[i].to_send = links_[i].sent < links_[i].out.size();
      has_more = has_more || awaited[i].to_send;
    }
    if (!has_more || SteadyClock::now() >= end) return {};
    TESSERA_TRY_STATUS(lines_->wait(awaited, std::chrono::milliseconds(10)));
  }
}

Status ProcessRanks::send_some(std::uint32_t rank) {
  Link& link = links_[rank];
  while (link.sent < link.out.size()) {
    const RankLines::Moved moved = lines_->send(rank, std::span(link.out).subspan(link.sent));
    engine_has_gone_ = engine_has_gone_ || (rank == 0 && moved.was_closed);
    if (!moved.gone.empty()) return gone(rank, "is gone: " + moved.gone);
    if (moved.bytes == 0) return {};
    link.sent += moved.bytes;
    moved_ += moved.bytes;
  }
  return {};
}

Status ProcessRanks::check_header(std::uint32_t rank) const {
  const FrameHeader& header = links_[rank].header;
  const bool is_sound = header.magic == FrameHeader::kMagic && header.kind >= FrameKind::part && header.kind <= FrameKind::message && header.bytes <= most_bytes_;
  return is_sound ? Status() : gone(rank, "sends bytes that are not a frame");
}

Status ProcessRanks::read_frame(std::uint32_t rank) {
  Link& link = links_[rank];
  const auto head = std::as_writable_bytes(std::span(&link.header, 1));
  while (!link.is_whole) {
    const bool in_head = link.header_bytes < head.size();
    const std::span<std::byte> to = in_head ? head.subspan(link.header_bytes) : std::span(link.body).subspan(link.body_bytes);
    if (!to.empty()) {
      const RankLines::Moved moved = lines_->receive(rank, to);
      engine_has_gone_ = engine_has_gone_ || (rank == 0 && moved.was_closed);
      if (!moved.gone.empty()) return gone(rank, "is gone: " + moved.gone);
      if (moved.bytes == 0) return {};
      if (link.is_wanted) moved_ += moved.bytes;
      (in_head ? link.header_bytes : link.body_bytes) += moved.bytes;
      if (in_head && link.header_bytes == head.size()) {
        TESSERA_TRY_STATUS(check_header(rank));
        link.body.clear();
        link.body_bytes = 0;
      }
      continue;
    }
    if (link.body.size() < link.header.bytes) {  // the body grows as its bytes arrive: a header alone takes no memory
      link.body.resize(std::min<std::uint64_t>(link.header.bytes, std::max<std::uint64_t>(std::uint64_t{1} << 20, 2 * link.body.size())));
      continue;
    }
    if (hash_of(link.header, link.body) != link.header.hash) return gone(rank, "sends damaged bytes");
    link.header_bytes = 0;
    link.is_whole = true;
  }
  return {};
}

template <class Arrived>
Status ProcessRanks::receive_some(std::uint32_t rank, const Arrived& arrived) {
  constexpr int kMostFrames = 64;  // then the other connections have their turn
  Link& link = links_[rank];
  for (int frames = 0; frames < kMostFrames && lines_->is_open(rank); ++frames) {
    if (const Status read = read_frame(rank); !read) {
      if (link.is_wanted) return read;
      lines_->close(rank);  // no call waits for this rank (it may have ended after its last part); the next call that does returns the error
      return {};
    }
    if (!link.is_whole) return {};
    const FrameHeader& header = link.header;
    const bool is_message = header.kind == FrameKind::message;
    if (header.step < step_ || (header.step == step_ && !in_step_ && !is_message)) {  // a frame of a step that was stopped
      link.is_whole = false;
      continue;
    }
    if (in_step_ && header.step > step_) {  // of a later step. If this step's frame was wanted, the other rank knows that the step was stopped
      if (link.is_wanted) stopped_ = make_stopped();
      return {};
    }
    if (in_step_ && header.kind == FrameKind::stop) {
      link.is_whole = false;
      stopped_ = error_of(rank, link.body);
      return {};
    }
    if (!link.is_wanted || (!in_step_ && !is_message)) return {};  // a frame for later
    link.is_whole = false;
    TESSERA_TRY_STATUS(arrived(rank));
  }
  return {};
}

template <class Arrived>
Status ProcessRanks::run(std::chrono::milliseconds timeout, Patience patience, const std::stop_token& stop, const Arrived& arrived) noexcept {
  const Status status = guard([&]() -> Status {
    constexpr std::chrono::milliseconds kLook{100};  // time between two looks at `stop`
    SteadyClock::time_point end = SteadyClock::now() + timeout;
    std::vector<RankLines::Awaited> awaited(links_.size());
    for (;;) {
      const std::uint64_t moved_before = moved_;
      // First try without waiting, because usually all frames have arrived.
      for (std::uint32_t i = 0; i < links_.size(); ++i) {
        if (i == rank_ || !lines_->is_open(i)) continue;
        if (in_step_ || links_[i].is_wanted || links_[i].sent < links_[i].out.size()) TESSERA_TRY_STATUS(send_some(i));
        TESSERA_TRY_STATUS(receive_some(i, arrived));
        if (!stopped_) return {};
      }
      bool all_done = true;
      std::uint32_t late = 0;
      for (std::uint32_t i = 0; i < links_.size(); ++i) {
        const Link& link = links_[i];
        const bool is_open = lines_->is_open(i), has_more = link.sent < link.out.size();
        awaited[i] = {.to_send = is_open && has_more, .to_receive = is_open && !link.is_whole};
        if (!has_more && !link.is_wanted) continue;
        if (!is_open && i != rank_) return gone(i, "is gone: there is no connection");
        all_done = false;
        late = i;
      }
      if (all_done) return {};
      if (stop.stop_requested()) return make_error(ErrorCode::cancelled, "stopped");
      if (moved_ != moved_before && patience == Patience::from_last_byte) end = SteadyClock::now() + timeout;
      else if (SteadyClock::now() >= end) return gone(late, fmt::format("does not answer within {} ms", timeout.count()));
      TESSERA_TRY_STATUS(lines_->wait(awaited, std::min(kLook, timeout)));
    }
  });
  for (Link& link : links_) link.is_wanted = false;
  if (status || status.error().code() == ErrorCode::cancelled) return status;
  return break_with(status.error());
}

Status ProcessRanks::gather(std::span<const std::byte> mine, std::span<const std::span<std::byte>> parts) noexcept {
  if (!broken_) return broken_;
  if (!stopped_) return stopped_;
  ++number_;
  const Status queued = guard([&]() -> Status {
    for (std::uint32_t i = 0; i < links_.size(); ++i) {
      if (i == rank_) continue;
      if (!mine.empty()) queue(links_[i], FrameKind::part, mine);
      links_[i].is_wanted = !parts[i].empty();
    }
    return {};
  });
  if (!queued) return break_with(queued.error());
  TESSERA_TRY_STATUS(run(timeout_, Patience::from_last_byte, {}, [&](std::uint32_t rank) -> Status {
    Link& link = links_[rank];
    if (link.header.kind != FrameKind::part || link.header.number != number_ || link.body.size() != parts[rank].size()) {
      return gone(rank, "sends another part than this rank expects");
    }
    std::memcpy(parts[rank].data(), link.body.data(), link.body.size());
    link.is_wanted = false;
    return {};
  }));
  return stopped_;
}

Status ProcessRanks::send(std::uint32_t to, std::span<const std::byte> message) noexcept {
  if (!broken_) return broken_;
  const Status queued = guard([&]() -> Status {
    queue(links_[to], FrameKind::message, message);
    return {};
  });
  if (!queued) return break_with(queued.error());
  return run(timeout_, Patience::from_last_byte, {}, [](std::uint32_t) { return Status(); });
}

Status ProcessRanks::receive(std::uint32_t from, std::vector<std::byte>& message, std::uint64_t& step, std::chrono::milliseconds timeout,
                            const std::stop_token& stop) noexcept {
  if (!broken_) return broken_;
  stopped_ = {};
  in_step_ = false;
  Link& link = links_[from];
  link.is_wanted = true;
  return run(timeout, Patience::in_all, stop, [&](std::uint32_t) {
    message = std::move(link.body);
    step = link.header.step;
    link.is_wanted = false;
    return Status();
  });
}

Status ProcessRanks::receive_from_all(std::chrono::milliseconds timeout, const std::stop_token& stop,
                                     const std::function<Status(std::uint32_t, std::span<const std::byte>)>& take) noexcept {
  if (!broken_) return broken_;
  stopped_ = {};
  in_step_ = false;
  for (std::uint32_t i = 0; i < links_.size(); ++i) links_[i].is_wanted = i != rank_;
  return run(timeout, Patience::in_all, stop, [&](std::uint32_t rank) -> Status {
    links_[rank].is_wanted = false;
    return take(rank, links_[rank].body);
  });
}

}  // namespace tessera::detail
