// Tells routers which beginnings of prompts this server has computed: publishes the changes of each model's prefix index over ZeroMQ, in
// the layout of vLLM's KV events. A router can then send a prompt to the server that has computed its beginning (for example llm-d's
// precise prefix routing).
//
// A message has three frames: a topic ("kv@HOST:PORT@MODEL"), a number that counts messages (8 bytes, big-endian), and an array in MessagePack:
// [seconds since 1970, [event...], nil]. An event is an array too:
//   ["BlockStored", [hash], hash of the page before | nil, [token...], tokens of a page, nil, nil, nil]
//   ["BlockRemoved", [hash], nil]
//   ["AllBlocksCleared"]
// The nils stand for an adapter's number, the kind of memory, and an adapter's name. The library's events do not have these values.
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
  // Hashes of the pages that were published as stored and not yet as removed. KvEvent::before of a sequence's first page is not the hash of a
  // page, so it is not in this set; in its place nil is published.
  std::unordered_set<std::uint64_t> stored_;
};

// Returns the last frame of a message with these events. Each event is an array of MessagePack.
[[nodiscard]] std::string kv_event_batch(double seconds, const std::vector<std::string>& events);

// Publishes the events of all models of this server. Any thread may call.
class KvEventPublisher {
 public:
  using Sink = std::function<void(const tessera::KvEvent&)>;
  // Publishes at this endpoint, for example "tcp://*:5557". Throws UsageError: the endpoint cannot be used, or the program was built
  // without ZeroMQ.
  explicit KvEventPublisher(const std::string& endpoint);
  ~KvEventPublisher();
  KvEventPublisher(const KvEventPublisher&) = delete;
  KvEventPublisher& operator=(const KvEventPublisher&) = delete;

  // Sets the address of this server for topics, "HOST:PORT", at which routers reach the server. Call this before sink().
  void set_address(std::string address) { address_ = std::move(address); }
  // Returns a function that publishes the events of `model`. When the model is unloaded, the function is destroyed, and its destruction
  // publishes that all pages of the model are gone. The publisher must outlive the function. Only one thread at a time may call the
  // function.
  [[nodiscard]] Sink sink(const std::string& model);

 private:
  struct Socket;
  class Source;
  struct Event {
    std::string topic, text;
  };
  void push(const std::string& topic, std::string text);
  void send(std::vector<Event> events);
  void work();  // the work of the thread: sends the events that have come, in few messages

  std::string address_;
  std::unique_ptr<Socket> socket_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> events_;
  bool is_ending_ = false;
  // Started with the first event, not by the constructor: when main.cpp makes this object, the signals are not blocked yet, and the thread
  // would not inherit the block (EndSignals).
  std::thread thread_;
};

}  // namespace server
