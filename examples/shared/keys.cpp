#include "keys.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "failure.hpp"
#include "system/program.hpp"

namespace server {

Keys::Digest Keys::digest(std::string_view key) {
  Digest result{};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), result.data());
  return result;
}

void Keys::add(std::string_view line) {
  const auto trim = [](std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
    return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
  };
  line = trim(line);
  const std::size_t space = line.find_first_of(" \t");
  std::string name = fmt::format("key{}", keys_.size() + 1);
  std::string_view key = line;
  if (space != line.npos) {
    name = line.substr(0, space);
    key = trim(line.substr(space));
  }
  if (key.empty()) throw Failure(tessera::ErrorCode::invalid_argument, "an API key is empty: give a text, such as \"NAME KEY\"");
  keys_.push_back({std::move(name), digest(key)});
}

void Keys::read_file(const std::string& path) {
  std::ifstream file(tessera::tool::path_of(path));
  if (!file) throw Failure(tessera::ErrorCode::not_found, fmt::format("--api-key-file: cannot read {}", path));
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find_first_not_of(" \t\r");
    if (first != line.npos && line[first] != '#') add(line);
  }
  if (empty()) {
    throw Failure(tessera::ErrorCode::invalid_argument,
                  fmt::format("--api-key-file: there is no key in {}; write a line NAME KEY for each client", path));
  }
}

std::optional<std::string> Keys::tenant_of(const HttpRequest& request) const {
  std::string_view given = request.header("authorization");
  constexpr std::string_view kBearer = "bearer ";
  const bool is_bearer = given.size() > kBearer.size() && std::equal(kBearer.begin(), kBearer.end(), given.begin(), [](char a, char b) {
    return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b + 32) : b);
  });
  given = is_bearer ? given.substr(kBearer.size()) : request.header("x-api-key");
  const Digest theirs = digest(given);
  const Key* found = nullptr;
  for (const Key& key : keys_) {
    const bool same = CRYPTO_memcmp(key.digest.data(), theirs.data(), theirs.size()) == 0;
    found = same ? &key : found;
  }
  return found != nullptr ? std::optional(found->name) : std::nullopt;
}

double Rates::wait_of(const std::string& tenant) {
  if (per_minute_ <= 0.0) return 0.0;
  const double most = std::max(1.0, per_minute_ / 6.0);
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  auto& bucket = buckets_.try_emplace(tenant, Bucket{most, now}).first->second;
  bucket.left = std::min(most, bucket.left + std::chrono::duration<double>(now - bucket.at).count() * per_minute_ / 60.0);
  bucket.at = now;
  if (bucket.left < 1.0) return (1.0 - bucket.left) * 60.0 / per_minute_;
  bucket.left -= 1.0;
  return 0.0;
}

}  // namespace server
