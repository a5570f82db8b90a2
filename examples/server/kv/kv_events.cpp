#include "kv/kv_events.hpp"

#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#ifdef SERVER_HAS_ZEROMQ
#include <zmq.h>
#endif

#include "failure.hpp"

namespace server {

namespace {

// Writes MessagePack, with the five kinds of value that events have. These few lines save a dependency on a library.
class MessagePack {
 public:
  MessagePack& nil() { return byte(0xc0); }
  MessagePack& number(double value) { return byte(0xcb).big_endian(std::bit_cast<std::uint64_t>(value), 8); }
  MessagePack& number(std::uint64_t value) {
    if (value < 0x80) return byte(static_cast<unsigned>(value));
    if (value <= 0xff) return byte(0xcc).big_endian(value, 1);
    if (value <= 0xffff) return byte(0xcd).big_endian(value, 2);
    if (value <= 0xffff'ffff) return byte(0xce).big_endian(value, 4);
    return byte(0xcf).big_endian(value, 8);
  }
  MessagePack& text(std::string_view value) {  // precondition: less than 32 bytes
    byte(0xa0 + static_cast<unsigned>(value.size()));
    bytes_ += value;
    return *this;
  }
  MessagePack& array(std::size_t elements) {
    if (elements < 16) return byte(0x90 + static_cast<unsigned>(elements));
    return elements <= 0xffff ? byte(0xdc).big_endian(elements, 2) : byte(0xdd).big_endian(elements, 4);
  }
  MessagePack& written(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  MessagePack& byte(unsigned value) {
    bytes_ += static_cast<char>(value);
    return *this;
  }
  MessagePack& big_endian(std::uint64_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) byte(static_cast<unsigned>(value >> (8 * i) & 0xff));
    return *this;
  }
  std::string bytes_;
};

std::string all_cleared() { return MessagePack().array(1).text("AllBlocksCleared").take(); }

}  // namespace

std::string KvEventWriter::write(const tessera::KvEvent& event) {
  using EventKind = tessera::KvEvent::Kind;
  const std::uint64_t page = event.page.low, before = event.before.low;
  MessagePack out;
  switch (event.kind) {
    case EventKind::cleared: stored_.clear(); return all_cleared();
    case EventKind::removed:
      stored_.erase(page);
      return out.array(3).text("BlockRemoved").array(1).number(page).nil().take();
    case EventKind::stored: break;
  }
  out.array(8).text("BlockStored").array(1).number(page);
  if (stored_.contains(before)) out.number(before);
  else out.nil();
  stored_.insert(page);
  out.array(event.tokens.size());
  for (const tessera::Token token : event.tokens) out.number(static_cast<std::uint64_t>(token));  // requests have no embeddings (-1)
  return out.number(std::uint64_t{event.tokens.size()}).nil().nil().nil().take();
}

std::string kv_event_batch(double seconds, const std::vector<std::string>& events) {
  MessagePack out;
  out.array(3).number(seconds).array(events.size());
  for (const std::string& event : events) out.written(event);
  return out.nil().take();
}

// A model's events on their way to the publisher.
class KvEventPublisher::Source {
 public:
  Source(KvEventPublisher& publisher, std::string topic) : publisher_(publisher), topic_(std::move(topic)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() {
    try {
      publisher_.push(topic_, all_cleared());
    } catch (...) {  // no memory: routers go on believing that this server has the pages. Prompts that they send are then computed
    }
  }
  void take(const tessera::KvEvent& event) { publisher_.push(topic_, writer_.write(event)); }

 private:
  KvEventPublisher& publisher_;
  std::string topic_;
  KvEventWriter writer_;
};

#ifdef SERVER_HAS_ZEROMQ

struct KvEventPublisher::Socket {
  void *context = zmq_ctx_new(), *socket = nullptr;
  std::uint64_t messages = 0;

  explicit Socket(const std::string& endpoint) {
    const auto refuse = [&] { throw UsageError(fmt::format("--kv-events: cannot publish at \"{}\": {}; give an endpoint such as tcp://*:5557", endpoint, zmq_strerror(zmq_errno()))); };
    if (context == nullptr) refuse();
    socket = zmq_socket(context, ZMQ_PUB);
    const int waiting = 100'000;  // the most messages that wait for a slow subscriber; it misses further messages (as with vLLM)
    const int linger = 200;       // milliseconds to send the last messages when the server ends
    if (socket == nullptr || zmq_setsockopt(socket, ZMQ_SNDHWM, &waiting, sizeof waiting) != 0 ||
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger) != 0 || zmq_bind(socket, endpoint.c_str()) != 0) {
      const int error = zmq_errno();
      close();
      errno = error;
      refuse();
    }
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close(); }
  void close() noexcept {
    if (socket != nullptr) zmq_close(std::exchange(socket, nullptr));
    if (context != nullptr) zmq_ctx_term(std::exchange(context, nullptr));
  }
  void send(const std::string& topic, const std::string& batch) {
    char number[8];
    for (int i = 0; i < 8; ++i) number[i] = static_cast<char>(messages >> (8 * (7 - i)) & 0xff);
    ++messages;
    zmq_send(socket, topic.data(), topic.size(), ZMQ_SNDMORE);
    zmq_send(socket, number, sizeof number, ZMQ_SNDMORE);
    zmq_send(socket, batch.data(), batch.size(), 0);
  }
};

#else

struct KvEventPublisher::Socket {
  explicit Socket(const std::string&) { throw UsageError("--kv-events: this program was built without ZeroMQ: leave the option out, or build with libzmq3-dev"); }
  void send(const std::string&, const std::string&) {}
};

#endif

KvEventPublisher::KvEventPublisher(const std::string& endpoint) : socket_(std::make_unique<Socket>(endpoint)) {}

KvEventPublisher::~KvEventPublisher() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

KvEventPublisher::Sink KvEventPublisher::sink(const std::string& model) {
  return [source = std::make_shared<Source>(*this, fmt::format("kv@{}@{}", address_, model))](const tessera::KvEvent& event) { source->take(event); };
}

void KvEventPublisher::push(const std::string& topic, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    events_.push_back({topic, std::move(text)});
  }
  changed_.notify_one();
}

void KvEventPublisher::send(std::vector<Event> events) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  for (std::size_t i = 0; i < events.size();) {
    const std::string topic = events[i].topic;
    std::vector<std::string> batch;
    for (; i < events.size() && events[i].topic == topic; ++i) batch.push_back(std::move(events[i].text));
    socket_->send(topic, kv_event_batch(now, batch));
  }
}

void KvEventPublisher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_ending_ || !events_.empty(); });
    std::vector<Event> events = std::exchange(events_, {});
    if (events.empty()) return;
    lock.unlock();
    try {
      send(std::move(events));
    } catch (const std::bad_alloc&) {  // routers miss these events, and then have a wrong list of this server's pages
      std::fprintf(stderr, "no memory to publish KV events\n");
    }
    lock.lock();
  }
}

}  // namespace server
