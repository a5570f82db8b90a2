#include "text/models/charsmap.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kLongestSequence = 256;  // at most this many bytes are matched, so that the search ends even if the trie has a cycle

// The functions below read the fields of a unit. Each unit of the trie's array is a node; its index in the array is i. The child of node
// i for the byte c is the unit at index i ^ offset_of(node) ^ c, if label_of() of that unit is c; otherwise node i has no child for c. If
// has_value(node), the bytes on the path to the node are a sequence of the table, and the node's child for byte 0 holds the value: the
// offset of the replacement.
bool has_value(std::uint32_t unit) noexcept { return (unit >> 8 & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) noexcept { return unit & 0x7FFFFFFFu; }
std::uint32_t label_of(std::uint32_t unit) noexcept { return unit & 0x800000FFu; }
std::uint32_t offset_of(std::uint32_t unit) noexcept { return unit >> 10 << ((unit & 0x200u) >> 6); }

struct Parts {
  std::string_view units, replacements;
};

Parts parts_of(std::string_view blob, std::uint32_t unit_bytes) noexcept {
  return {blob.substr(4, unit_bytes), blob.substr(4 + std::size_t{unit_bytes})};
}

std::uint32_t unit_bytes_of(std::string_view blob) noexcept {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, blob.data(), 4);
  return bytes;
}

}  // namespace

Status Charsmap::check(std::string_view blob) {
  if (blob.empty()) return {};
  if (blob.size() < 4) return make_error(ErrorCode::corrupt_file, "{} bytes: a charsmap begins with four that say its trie's size", blob.size());
  const std::uint32_t bytes = unit_bytes_of(blob);
  if (bytes == 0 || bytes % 4 != 0 || bytes > blob.size() - 4) {
    return make_error(ErrorCode::corrupt_file, "a trie of {} bytes in a charsmap of {}", bytes, blob.size());
  }
  const std::string_view replacements = parts_of(blob, bytes).replacements;
  if (replacements.empty() || replacements.back() != '\0') {
    return make_error(ErrorCode::corrupt_file, "the charsmap's last replacement does not end");
  }
  for (std::size_t at = 0; at < replacements.size();) {
    const std::size_t end = replacements.find('\0', at);
    if (end - at > kLongestReplacement) {
      return make_error(ErrorCode::unsupported, "the charsmap has a replacement of {} bytes; at most {} are read", end - at,
                        kLongestReplacement);
    }
    at = end + 1;
  }
  return {};
}

Charsmap::Charsmap(std::string_view blob) {
  if (blob.empty()) return;
  const Parts parts = parts_of(blob, unit_bytes_of(blob));
  units_.resize(parts.units.size() / 4);
  std::memcpy(units_.data(), parts.units.data(), parts.units.size());
  replacements_.assign(parts.replacements.begin(), parts.replacements.end());
}

// Calls accept(found) for each sequence at the beginning of `text` that has a replacement, the shortest first, until it returns false.
template <class Accept>
void Charsmap::each_found(std::string_view text, const Accept& accept) const noexcept {
  if (units_.empty()) return;
  std::uint32_t at = offset_of(units_[0]);
  const std::size_t end = std::min(text.size(), kLongestSequence);
  for (std::size_t i = 0; i < end; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_value(unit) || at >= units_.size()) continue;
    const std::uint32_t value = value_of(units_[at]);
    if (value < replacements_.size() && !accept(Found{i + 1, std::string_view(replacements_.data() + value)})) return;
  }
}

Charsmap::Found Charsmap::find(std::string_view text) const noexcept {
  Found longest{};
  each_found(text, [&](const Found& found) {
    longest = found;
    return true;
  });
  return longest;
}

Charsmap::Found Charsmap::find_shortest(std::string_view text) const noexcept {
  Found shortest{};
  each_found(text, [&](const Found& found) {
    shortest = found;
    return false;
  });
  return shortest;
}

}  // namespace tessera::detail
