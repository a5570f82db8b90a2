// Writes a graph of hnswlib to a file, and reads it. hnswlib's own reader takes counts and positions from the file without a check. This
// reader checks them all, so that no damaged or forged file makes a search read outside of the graph.
//
// The file: magic (8 bytes); count, bytes of a vector with its links (64 bits each); the highest level, the vector where searches begin (32 bits
// each); all vectors with their links on level 0; for each vector its level (32 bits) and its links on the levels from 1 on.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>

// Turns off hnswlib's own vector code, because its prefetch reads one number past the end of a list. Distances are computed by
// LikenessSpace instead.
#define NO_MANUAL_VECTORIZATION
#include <hnswlib/hnswlib.h>

namespace rag {

using Links = hnswlib::HierarchicalNSW<float>;
using GraphHash = std::array<std::byte, 16>;  // XXH3, 128 bits, of all bytes of the file

// Writes the graph, and returns the hash of the file. Throws Failure (io).
[[nodiscard]] GraphHash write_graph(const std::filesystem::path& file, const Links& links);

// Reads a graph of `count` vectors into `links`, which must be empty and made for `count` vectors. Returns true if the file has the hash
// `hash` and all its numbers are within their limits. After false, `links` may only be destroyed. Throws std::bad_alloc.
[[nodiscard]] bool read_graph(const std::filesystem::path& file, const GraphHash& hash, std::size_t count, Links& links);

}  // namespace rag
