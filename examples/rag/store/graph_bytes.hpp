// A graph of hnswlib as bytes of a file. hnswlib's own reader takes counts and places from the file without a check; this one checks all of
// them, so that no file, damaged or forged, makes a search read outside of the graph.
//
// The file: magic (8 bytes); count, bytes of a vector with its links (64 bits each); the highest level, the vector where searches begin (32 bits
// each); all vectors with their links on level 0; for each vector its level (32 bits) and its links on the levels from 1 on.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>

// hnswlib's own vector code prefetches by a number that it reads one place behind the end of a list; LikenessSpace has the distance instead.
#define NO_MANUAL_VECTORIZATION
#include <hnswlib/hnswlib.h>

namespace rag {

using Links = hnswlib::HierarchicalNSW<float>;
using GraphHash = std::array<std::byte, 16>;  // XXH3, 128 bits, of all bytes of the file

// Writes the graph, and returns the hash of the file. Throws Failure (io).
[[nodiscard]] GraphHash write_graph(const std::filesystem::path& file, const Links& links);

// Reads a graph of `count` vectors. `links`: empty, made for `count` vectors. Returns whether the file has this hash and makes sense; if not,
// `links` can only be destroyed. Throws std::bad_alloc.
[[nodiscard]] bool read_graph(const std::filesystem::path& file, const GraphHash& hash, std::size_t count, Links& links);

}  // namespace rag
