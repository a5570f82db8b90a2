// What decides a sequence's keys and values besides its tokens. Sequences of the same identity have the same bits: they
// may share pages, and a saved one may be restored. Restored on another backend, whose numerics are others, it is marked.
#pragma once

#include <string>
#include <string_view>

#include <tessera/core/dtype.hpp>
#include <tessera/kv/page_pool.hpp>

#include "model/model.hpp"

namespace tessera::detail {

struct Identity {
  std::string model;      // architecture and a hash of all weights
  std::string numerics;   // the families of the kernels, behind "NAME: " if the backend is not the CPU
  std::string positions;  // rope and its options, or learned
  std::string windows;    // sliding windows, by layer
};

// The backend that an identity's numerics are of.
[[nodiscard]] std::string_view backend_of(std::string_view numerics) noexcept;

[[nodiscard]] Identity make_identity(const Model& model, const backend::Backend& backend);

// All of it with the KV type and the caller's salt: the root of the prefix index. No adapter exists yet; one will be a
// part.
[[nodiscard]] std::string prefix_identity(const Identity& identity, DType dtype, std::string_view salt);

}  // namespace tessera::detail
