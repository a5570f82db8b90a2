// An Identity is everything beside the tokens that decides a sequence's keys and values. Sequences of the same tokens and identity have the
// same bits: they may share pages, and a saved session may be restored. A session restored on another backend is marked as edited.
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
  // An operation, and the family of kernels that computes it. `dtype` names the weight format or KV type.
  struct Family {
    std::string operation, dtype, name;
  };

  std::string model;  // architecture and a hash of all weights
  std::string backend;
  std::vector<Family> families;
  std::string spec;  // spec_text(): all fields that change results, windows included
};

// Returns a text with the names of the kernel families (docs/glossary.md) that compute a sequence with these KV types: the families of
// attention, of matrix products for each weight type, and of all other operations. If all are one family, only its name is listed.
// Either text begins with the backend's name and ": ". Exception: with the CPU, nothing precedes the families.
[[nodiscard]] std::string numerics_of(const Identity& identity, const KvOptions& kv);

// Returns the backend's name from a text of numerics_of().
[[nodiscard]] std::string_view backend_of(std::string_view numerics) noexcept;

[[nodiscard]] Identity make_identity(const Model& model, const backend::Backend& backend);

// Returns the identity with KV types and the caller's salt as one text: the root of the prefix index. An adapter, once there are adapters,
// must become a part of it.
[[nodiscard]] std::string prefix_identity(const Identity& identity, const KvOptions& kv);

}  // namespace tessera::detail
