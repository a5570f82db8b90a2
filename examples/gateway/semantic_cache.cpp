#include "semantic_cache.hpp"

#include <array>
#include <utility>

#include <openssl/sha.h>

namespace gateway {

namespace {

constexpr std::uint64_t kEntryBytes = 600;   // bytes of an entry itself, and of its places in the list and the maps
constexpr std::size_t kExpiredAtOnce = 64;   // entries that one call removes because their time is over

// Returns the dot product. It adds up 16 sums side by side, because in a single sum each addition would wait for the one before.
double similarity_of(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return 0;
  constexpr std::size_t kSums = 16;
  std::array<float, kSums> sums{};
  std::size_t at = 0;
  for (; at + kSums <= a.size(); at += kSums) {
    for (std::size_t i = 0; i < kSums; ++i) sums[i] += a[at + i] * b[at + i];
  }
  for (; at < a.size(); ++at) sums[0] += a[at] * b[at];
  float sum = 0;
  for (const float each : sums) sum += each;
  return static_cast<double>(sum);
}

}  // namespace

CacheKey key_of(std::string_view tenant, std::string_view context) {
  CacheKey key{.tenant = std::string(tenant)};
  SHA256(reinterpret_cast<const unsigned char*>(context.data()), context.size(), key.context.data());
  return key;
}

SemanticCache::Lookup SemanticCache::find(const CacheKey& key, std::span<const float> vector) {
  const std::lock_guard lock(mutex_);
  Lookup lookup;
  const auto now = now_();
  remove_expired(now);
  auto nearest = entries_.end();
  if (const auto group = groups_.find(key); group != groups_.end()) {
    for (const auto entry : group->second.entries) {
      if (entry->until <= now) continue;
      const double similarity = similarity_of(entry->vector, vector);
      if (nearest != entries_.end() && similarity <= lookup.similarity) continue;
      nearest = entry;
      lookup.similarity = similarity;
    }
  }
  if (nearest != entries_.end()) figures_.similarities.add(lookup.similarity);
  if (nearest == entries_.end() || !(lookup.similarity >= options_.threshold)) {  // NaN is no hit
    ++figures_.misses;
    return lookup;
  }
  ++figures_.hits;
  lookup.hit = Hit{.answer = nearest->answer, .question = nearest->question, .id = nearest->id};
  entries_.splice(entries_.begin(), entries_, nearest);
  return lookup;
}

void SemanticCache::put(const CacheKey& key, std::string question, std::vector<float> vector, Answer answer) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t bytes = kEntryBytes + key.tenant.size() + question.size() + answer.text.size() + answer.model.size() + vector.size() * sizeof(float);
  if (bytes > options_.bytes) return;
  const auto now = now_();
  remove_expired(now);
  if (const auto group = groups_.find(key); group != groups_.end()) {
    const auto same = group->second.by_question.find(question);
    if (same != group->second.by_question.end()) remove(same->second);
  }
  while (figures_.bytes + bytes > options_.bytes) {
    remove(std::prev(entries_.end()));
    ++figures_.evicted;
  }
  entries_.push_front({.key = key, .question = std::move(question), .vector = std::move(vector), .answer = std::move(answer), .id = ++last_id_, .bytes = bytes,
                       .until = now + options_.time_to_live});
  const auto entry = entries_.begin();
  figures_.bytes += bytes;
  try {
    Group& group = groups_[key];
    entry->place = group.entries.size();
    group.entries.push_back(entry);
    group.by_question.emplace(entry->question, entry);
    by_id_.emplace_hint(by_id_.end(), entry->id, entry);
  } catch (...) {  // no memory
    remove(entry);
    throw;
  }
  ++figures_.added;
}

void SemanticCache::forget(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto entry = by_id_.find(id);
  if (entry == by_id_.end()) return;
  remove(entry->second);
  ++figures_.forgotten;
}

// Removes an entry from the list and from all maps.
void SemanticCache::remove(Entries::iterator entry) {
  if (const auto group = groups_.find(entry->key); group != groups_.end()) {
    auto& [entries, by_question] = group->second;
    if (entry->place < entries.size() && entries[entry->place] == entry) {
      entries.back()->place = entry->place;
      entries[entry->place] = entries.back();
      entries.pop_back();
    }
    const auto named = by_question.find(entry->question);
    if (named != by_question.end() && named->second == entry) by_question.erase(named);
    if (entries.empty()) groups_.erase(group);
  }
  by_id_.erase(entry->id);
  figures_.bytes -= entry->bytes;
  entries_.erase(entry);
}

void SemanticCache::remove_expired(Clock::time_point now) {
  for (std::size_t n = 0; n < kExpiredAtOnce && !by_id_.empty() && by_id_.begin()->second->until <= now; ++n) {
    remove(by_id_.begin()->second);
    ++figures_.expired;
  }
}

SemanticCache::Figures SemanticCache::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures = figures_;
  figures.entries = entries_.size();
  return figures;
}

}  // namespace gateway
