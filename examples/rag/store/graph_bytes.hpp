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

// Turns off hnswlib's own vector code, which reads a number one place after the end of a list, to prefetch. LikenessSpace computes
// distances.
#define NO_MANUAL_VECTORIZATION
#include <hnswlib/hnswlib.h>

namespace rag {

using Links = hnswlib::HierarchicalNSW<float>;
using GraphHash = std::array<std::byte, 16>;  // XXH3, 128 bits, of all bytes of the file

// Writes the graph, and returns the hash of the file. Throws Failure (io).
[[nodiscard]] GraphHash write_graph(const std::filesystem::path& file, const Links& links);

// Reads a graph of `count` vectors. `links`: empty, made for `count` vectors. Returns whether the file has this hash and makes sense. If
// the result is false, the only allowed use of `links` is its destruction. Throws std::bad_alloc.
[[nodiscard]] bool read_graph(const std::filesystem::path& file, const GraphHash& hash, std::size_t count, Links& links);

}  // namespace rag
