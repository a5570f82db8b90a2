// An Identity is everything besides the tokens that decides the bits of a sequence's keys and values. If two sequences have equal tokens
// and equal identities, their keys and values have the same bits. So the sequences may share pages, and a session saved by one engine may
// be restored by another engine of equal identity. A session that another backend has saved can be restored too, but is then marked as
// edited.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/dtype.hpp>
#include <tessera/extend/kv/kv_pools.hpp>
#include <tessera/session.hpp>

#include "backend/explanation.hpp"
#include "model/model.hpp"

namespace tessera::detail {

struct Identity {
  // An operation, and the family of kernels that computes it. `dtype`: the weight format or KV type that the operation computes with;
  // automatic: the operation has no type, or the family computes all KV types.
  struct Family {
    Operation operation;
    DType dtype;
    std::string name;
  };

  std::string model;  // architecture and a hash of all weights
  std::string backend;
  std::vector<Family> families;
  std::string spec;  // spec_text(): the fields of ModelSpec that change what the model computes for a sequence, windows included
};

// Returns a text with the names of the kernel families that compute a sequence with these KV types. If all operations have the same
// family, the text is only the family's name. Otherwise it lists the families of attention, of matrix products (one for each weight type)
// and, after "rest", of all other operations. On a backend other than the CPU, the text begins with the backend's name and ": ".
[[nodiscard]] std::string numerics_of(const Identity& identity, const KvOptions& kv);

// Returns the name of the backend in a text of numerics_of().
[[nodiscard]] std::string_view backend_of(std::string_view numerics) noexcept;

[[nodiscard]] Identity make_identity(const Model& model, const backend::Backend& backend);

// Returns a text of the identity, the KV types and the caller's salt. The prefix index shares pages only between sequences with equal
// texts. The text does not contain adapters: they are part of the key of the page in which they begin (KvInputs).
[[nodiscard]] std::string prefix_identity(const Identity& identity, const KvOptions& kv);

}  // namespace tessera::detail
