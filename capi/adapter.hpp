// The adapter's handle, and lists of adapters in the form in which callers pass them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/adapter.hpp>

#include "call.hpp"
#include "handle.hpp"

struct tessera_adapter : tessera::c::Tagged<tessera::c::Kind::adapter> {
  explicit tessera_adapter(tessera::Adapter of)
      : adapter(std::move(of)), name(adapter.name()), base(adapter.base_name()) {}
  tessera::Adapter adapter;
  std::string name, base;  // each ends with a zero byte
};

namespace tessera::c {

// Reads the list `given`; nullptr stands for an empty list. `name` is the parameter's name. Error: invalid_argument, an
// element has a wrong handle or scale.
[[nodiscard]] std::vector<AdapterUse> read_adapters(const tessera_adapter_list* given, std::string_view name);

}  // namespace tessera::c
