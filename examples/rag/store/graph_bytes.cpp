#include "store/graph_bytes.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"

namespace rag {

namespace {

constexpr std::array<char, 8> kGraphMagic{'t', 'r', 'a', 'g', 'h', 'n', 's', '2'};
constexpr std::uint32_t kMostLevels = 64;

struct GraphHead {
  std::array<char, 8> magic = kGraphMagic;
  std::uint64_t count = 0, bytes_of_vector = 0;
  std::int32_t highest_level = 0;
  std::uint32_t begin = 0;
};
static_assert(sizeof(GraphHead) == 32);

class Hasher {
 public:
  Hasher() : state_(XXH3_createState(), &XXH3_freeState) {
    if (!state_) throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }
  void add(const void* bytes, std::size_t size) { XXH3_128bits_update(state_.get(), bytes, size); }
  [[nodiscard]] GraphHash digest() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    GraphHash hash;
    std::memcpy(hash.data(), canonical.digest, hash.size());
    return hash;
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : stream_(file, std::ios::binary) {}
  [[nodiscard]] bool read(void* bytes, std::size_t size) {
    if (!stream_.read(static_cast<char*>(bytes), static_cast<std::streamsize>(size))) return false;
    hasher_.add(bytes, size);
    return true;
  }
  [[nodiscard]] bool is_at_end() { return stream_.peek() == std::ifstream::traits_type::eof(); }
  [[nodiscard]] GraphHash digest() const { return hasher_.digest(); }

 private:
  std::ifstream stream_;
  Hasher hasher_;
};

// Reads the level of each vector, and its links above level 0. Raises the graph's count of vectors right after the links of a vector are
// allocated: if reading fails, the graph's destructor frees the links of as many vectors as are counted.
bool read_levels(Reader& reader, std::size_t count, std::int32_t highest, Links& links) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t level = 0;
    if (!reader.read(&level, sizeof(level)) || static_cast<std::int64_t>(level) > highest) return false;
    links.linkLists_[i] = nullptr;
    const std::size_t size = level * links.size_links_per_element_;
    if (level > 0 && (links.linkLists_[i] = static_cast<char*>(std::malloc(size))) == nullptr) throw std::bad_alloc();
    links.element_levels_[i] = static_cast<int>(level);
    links.cur_element_count = i + 1;
    if (level > 0 && !reader.read(links.linkLists_[i], size)) return false;
  }
  return true;
}

// Returns whether a list of links on a level has at most `most` links, each to a vector that is on this level too.
bool is_sound(const hnswlib::linklistsizeint* list, std::size_t most, int level, std::size_t count, const Links& links) {
  if (*list > most) return false;  // also refuses bits in the upper half, which mark removed vectors: these graphs have none
  for (std::uint32_t i = 1; i <= *list; ++i) {
    if (list[i] >= count || links.element_levels_[list[i]] < level) return false;
  }
  return true;
}

bool are_sound(std::size_t count, const Links& links) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<hnswlib::tableint>(i);
    if (!is_sound(links.get_linklist0(id), links.maxM0_, 0, count, links)) return false;
    for (int level = 1; level <= links.element_levels_[i]; ++level) {
      if (!is_sound(links.get_linklist(id, level), links.maxM_, level, count, links)) return false;
    }
  }
  return true;
}

}  // namespace

GraphHash write_graph(const std::filesystem::path& file, const Links& links) {
  std::ofstream stream(file, std::ios::binary);
  Hasher hasher;
  const auto write = [&](const void* bytes, std::size_t size) {
    hasher.add(bytes, size);
    stream.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  };
  const std::size_t count = links.cur_element_count;
  const GraphHead head{.count = count, .bytes_of_vector = links.size_data_per_element_, .highest_level = links.maxlevel_, .begin = links.enterpoint_node_};
  write(&head, sizeof(head));
  write(links.data_level0_memory_, count * links.size_data_per_element_);
  for (std::size_t i = 0; i < count; ++i) {
    const auto level = static_cast<std::uint32_t>(links.element_levels_[i]);
    write(&level, sizeof(level));
    if (level > 0) write(links.linkLists_[i], level * links.size_links_per_element_);
  }
  stream.close();
  if (!stream) throw Failure(tessera::ErrorCode::io, fmt::format("{} cannot be written: is the disk full?", tessera::tool::text_of(file)));
  return hasher.digest();
}

bool read_graph(const std::filesystem::path& file, const GraphHash& hash, std::size_t count, Links& links) {
  Reader reader(file);
  GraphHead head;
  if (!reader.read(&head, sizeof(head)) || head.magic != kGraphMagic || head.count != count || head.bytes_of_vector != links.size_data_per_element_) return false;
  if (count == 0 || head.begin >= count || head.highest_level < 0 || head.highest_level > static_cast<std::int32_t>(kMostLevels)) return false;
  if (!reader.read(links.data_level0_memory_, count * links.size_data_per_element_) || !read_levels(reader, count, head.highest_level, links)) return false;
  if (!reader.is_at_end() || reader.digest() != hash) return false;
  if (links.element_levels_[head.begin] != head.highest_level || !are_sound(count, links)) return false;
  links.maxlevel_ = head.highest_level;
  links.enterpoint_node_ = head.begin;
  return true;
}

}  // namespace rag
