#include "kv/kv_exports.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace server {

namespace {

// Returns 128 random bits, so that nobody can guess an id.
std::string random_id() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", random());
  return id;
}

}  // namespace

bool KvExport::add(std::string_view piece, std::uint64_t most) {
  std::uint64_t all = *all_;
  do {
    if (piece.size() > most || all > most - piece.size()) return false;
  } while (!all_->compare_exchange_weak(all, all + piece.size()));
  bytes_ += piece.size();
  pieces_.emplace_back(piece);
  return true;
}

KvExports::~KvExports() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

tessera::Result<KvExports::Kept> KvExports::keep(const tessera::Session& session, const std::string& tenant) {
  const auto made = std::make_shared<KvExport>(tenant, bytes_);
  const tessera::ByteSink sink = [&](std::span<const std::byte> piece) -> tessera::Status {
    if (made->add({reinterpret_cast<const char*>(piece.data()), piece.size()}, options_.memory)) return {};
    return tessera::Error(tessera::ErrorCode::over_budget, "the exports have no memory left: see --kv-exports");
  };
  const tessera::Status saved = session.save(sink);
  const std::lock_guard lock(mutex_);
  if (!saved) {
    ++figures_.refused;
    return saved.error();
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { drop_expired(); });
  Kept kept{.id = random_id(), .bytes = made->bytes()};
  entries_.emplace(kept.id, Entry{made, Clock::now() + options_.time});
  ++figures_.exported;
  changed_.notify_all();
  return kept;
}

KvExportPtr KvExports::find(std::string_view id, std::string_view tenant) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  const bool is_there = found != entries_.end() && found->second.made->tenant() == tenant && found->second.until > Clock::now();
  return is_there ? found->second.made : nullptr;
}

void KvExports::sent(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  ++figures_.sent;
  figures_.sent_bytes += found->second.made->bytes();
  entries_.erase(found);
}

KvExports::Figures KvExports::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures = figures_;
  figures.bytes = *bytes_;
  return figures;
}

void KvExports::drop_expired() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    const auto now = Clock::now();
    figures_.expired += std::erase_if(entries_, [&](const auto& each) { return each.second.until <= now; });
    auto next = now + std::chrono::hours(1);
    for (const auto& [id, entry] : entries_) next = std::min(next, entry.until);
    changed_.wait_until(lock, next);
  }
}

}  // namespace server
