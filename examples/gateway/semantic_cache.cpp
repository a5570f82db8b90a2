#include "semantic_cache.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <openssl/sha.h>

namespace gateway {

namespace {

constexpr std::uint64_t kEntryBytes = 400;  // an entry's own, and its places in the list and the map

double similarity_of(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return 0;
  return static_cast<double>(std::inner_product(a.begin(), a.end(), b.begin(), 0.0f));
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
  auto nearest = entries_.end();
  std::vector<Entries::iterator> too_old;
  if (const auto group = groups_.find(key); group != groups_.end()) {
    for (const auto entry : group->second) {
      if (entry->until <= now) {
        too_old.push_back(entry);
        continue;
      }
      const double similarity = similarity_of(entry->vector, vector);
      if (nearest != entries_.end() && similarity <= lookup.similarity) continue;
      nearest = entry;
      lookup.similarity = similarity;
    }
  }
  for (const auto entry : too_old) remove(entry);
  figures_.expired += too_old.size();
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
  if (const auto group = groups_.find(key); group != groups_.end()) {
    const auto same = std::ranges::find_if(group->second, [&](const Entries::iterator& entry) { return entry->question == question; });
    if (same != group->second.end()) remove(*same);
  }
  while (figures_.bytes + bytes > options_.bytes) {
    remove(std::prev(entries_.end()));
    ++figures_.evicted;
  }
  entries_.push_front({.key = key, .question = std::move(question), .vector = std::move(vector), .answer = std::move(answer), .id = ++last_id_, .bytes = bytes,
                       .until = now_() + options_.time_to_live});
  try {
    groups_[key].push_back(entries_.begin());
  } catch (...) {  // no memory
    entries_.pop_front();
    throw;
  }
  figures_.bytes += bytes;
  ++figures_.added;
}

void SemanticCache::forget(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto entry = std::ranges::find(entries_, id, &Entry::id);
  if (entry == entries_.end()) return;
  remove(entry);
  ++figures_.forgotten;
}

void SemanticCache::remove(Entries::iterator entry) {
  const auto group = groups_.find(entry->key);
  std::erase(group->second, entry);
  if (group->second.empty()) groups_.erase(group);
  figures_.bytes -= entry->bytes;
  entries_.erase(entry);
}

SemanticCache::Figures SemanticCache::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures = figures_;
  figures.entries = entries_.size();
  return figures;
}

}  // namespace gateway
