// Keeps prompts that this server has computed, for other servers to fetch. An export is the bytes of a saved session (Session::save()),
// under a random id. It is dropped when another server has read it to its end, or after a time. All exports together keep within a limit of
// memory. They are copies outside of the KV budget, so a prompt that nobody fetches delays no request.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tessera/session.hpp>

namespace server {

// The bytes of one saved session.
class KvExport {
 public:
  using Bytes = std::shared_ptr<std::atomic<std::uint64_t>>;  // bytes of all exports
  KvExport(std::string tenant, Bytes all) : tenant_(std::move(tenant)), all_(std::move(all)) {}
  KvExport(const KvExport&) = delete;
  KvExport& operator=(const KvExport&) = delete;
  ~KvExport() { *all_ -= bytes_; }

  // Adds bytes to the export. Returns false, and adds nothing, if all exports together would have more than `most` bytes.
  [[nodiscard]] bool add(std::string_view piece, std::uint64_t most);
  [[nodiscard]] const std::string& tenant() const noexcept { return tenant_; }
  [[nodiscard]] const std::vector<std::string>& pieces() const noexcept { return pieces_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::string tenant_;
  Bytes all_;
  std::vector<std::string> pieces_;
  std::uint64_t bytes_ = 0;
};
using KvExportPtr = std::shared_ptr<const KvExport>;

// Any thread may call.
class KvExports {
 public:
  struct Options {
    std::uint64_t memory = 0;        // bytes of all exports together; 0: this server exports nothing
    std::chrono::seconds time{60};   // time for which an export waits to be fetched
  };
  struct Figures {
    std::uint64_t exported = 0, refused = 0, expired = 0;
    std::uint64_t sent = 0, sent_bytes = 0;  // exports that were read to their end
    std::uint64_t bytes = 0;                 // bytes of the exports that exist now
  };
  struct Kept {
    std::string id;
    std::uint64_t bytes = 0;
  };

  explicit KvExports(Options options) : options_(options) {}
  ~KvExports();
  KvExports(const KvExports&) = delete;
  KvExports& operator=(const KvExports&) = delete;

  [[nodiscard]] bool are_on() const noexcept { return options_.memory > 0; }
  // Saves a session of this tenant's request. Errors: over_budget, the limit of memory is reached; the errors of Session::save().
  [[nodiscard]] tessera::Result<Kept> keep(const tessera::Session& session, const std::string& tenant);
  // Returns the export with this id; nullptr if there is none, or if it belongs to another tenant.
  [[nodiscard]] KvExportPtr find(std::string_view id, std::string_view tenant) const;
  // Drops an export that a server has read to its end.
  void sent(const std::string& id);
  [[nodiscard]] Figures figures() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    KvExportPtr made;
    Clock::time_point until;
  };
  void drop_expired();  // the work of the thread: drops exports as their time ends

  Options options_;
  KvExport::Bytes bytes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry, std::less<>> entries_;
  Figures figures_;
  bool is_ending_ = false;
  // Started with the first export, not by the constructor: when main.cpp makes this object, the signals are not blocked yet, and the thread
  // would not inherit the block (EndSignals).
  std::thread thread_;
};

}  // namespace server
