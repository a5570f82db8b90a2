// What decides a sequence's keys and values besides its tokens. Sequences of the same identity have the same bits: they
// may share pages, and a saved one may be restored. Restored on another backend, whose numerics are others, it is marked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/kv/kv_pools.hpp>
#include <tessera/session.hpp>

#include "model/model.hpp"

namespace tessera::detail {

struct Identity {
  // The family of an operation's kernels, for weights or a KV type of a name.
  struct Family {
    std::string operation, dtype, name;
  };

  std::string model;  // architecture and a hash of all weights
  std::string backend;
  std::vector<Family> families;
  std::string spec;  // the whole spec, its windows too: spec_text()
};

// What computes a sequence with keys and values of these types: the families of attention, of products by weight type, and of
// the rest, or one name if it is the same for all; behind "NAME: " if the backend is not the CPU.
[[nodiscard]] std::string numerics_of(const Identity& identity, const KvOptions& kv);

// The backend that numerics are of.
[[nodiscard]] std::string_view backend_of(std::string_view numerics) noexcept;

[[nodiscard]] Identity make_identity(const Model& model, const backend::Backend& backend);

// All of it with the KV types and the caller's salt: the root of the prefix index. No adapter exists yet; one will be a
// part.
[[nodiscard]] std::string prefix_identity(const Identity& identity, const KvOptions& kv);

}  // namespace tessera::detail
