// Tells routers which beginnings of prompts this server has computed: the changes of each model's prefix index, over ZeroMQ, in the layout of
// vLLM's KV events. So a router sends a prompt to the server that knows its beginning (llm-d's precise prefix routing, for example).
//
// A message has three frames: a topic ("kv@HOST:PORT@MODEL"), a number that counts messages (8 bytes, big-endian), and an array in MessagePack:
// [seconds since 1970, [event...], nil]. An event is an array too:
//   ["BlockStored", [hash], hash of the page before | nil, [token...], tokens of a page, nil, nil, nil]
//   ["BlockRemoved", [hash], nil]
//   ["AllBlocksCleared"]
// The nils are an adapter's number, the kind of memory, and an adapter's name, about which the library's events say nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include <tessera/extend/kv/kv_event.hpp>

namespace server {

// Writes the events of one prefix index.
class KvEventWriter {
 public:
  // Returns the event as an array of MessagePack.
  [[nodiscard]] std::string write(const tessera::KvEvent& event);

 private:
  // Hashes of the pages that can be found now. KvEvent::before of a sequence's first page is not among them: it is a hash that belongs to
  // no page.
  std::unordered_set<std::uint64_t> stored_;
};

// Returns the last frame of a message with these events, of which each is an array of MessagePack.
[[nodiscard]] std::string kv_event_batch(double seconds, const std::vector<std::string>& events);

// Publishes the events of all models of this server. Any thread may call.
class KvEventPublisher {
 public:
  using Sink = std::function<void(const tessera::KvEvent&)>;
  // Publishes at this endpoint, such as "tcp://*:5557". Throws UsageError: the endpoint cannot be used, or the program was built without ZeroMQ.
  explicit KvEventPublisher(const std::string& endpoint);
  ~KvEventPublisher();
  KvEventPublisher(const KvEventPublisher&) = delete;
  KvEventPublisher& operator=(const KvEventPublisher&) = delete;

  // Sets where routers reach this server, for topics: "HOST:PORT". Call it before sink().
  void set_address(std::string address) { address_ = std::move(address); }
  // Returns a function that publishes a model's events. When it is destroyed, all pages of the model are told to be gone. The publisher must
  // outlive the function. One thread at a time calls it.
  [[nodiscard]] Sink sink(const std::string& model);

 private:
  struct Socket;
  class Source;
  struct Event {
    std::string topic, text;
  };
  void push(const std::string& topic, std::string text);
  void send(std::vector<Event> events);
  void work();  // of the thread: sends all events that have come as few messages

  std::string address_;
  std::unique_ptr<Socket> socket_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  bool is_ending_ = false;
  std::thread thread_;  // begins with the first event, as threads inherit the caller's mask of signals (main.cpp)
};

}  // namespace server
