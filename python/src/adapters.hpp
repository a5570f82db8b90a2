// tessera.Adapter, and lists of adapters in the form in which Python passes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "types/boxes.hpp"

namespace tessera::python {

struct AdapterBox {
  std::shared_ptr<EngineBox> engine;
  Adapter adapter;
};
using AdapterHandle = Handle<AdapterBox>;

// The argument `adapters` of functions. Example in Python: [pirate, (rhymes, 0.5), (brief, 1.0, 20)].
struct AdapterUses {
  std::vector<AdapterUse> list;
};
// Reads an adapter, or a sequence of adapters, pairs and triples. Returns false if the object is something else. An
// exception of the sequence's own code is passed on.
bool read_adapters(nb::handle object, AdapterUses& to);

// Returns a session's adapters as a list of triples, in a form that functions accept as `adapters`.
nb::list adapters_list(const std::shared_ptr<EngineBox>& engine, const std::vector<AdapterUse>& uses);

AdapterHandle load_adapter(const EngineHandle& engine, const std::filesystem::path& path);

}  // namespace tessera::python

namespace nanobind::detail {

template <>
struct type_caster<tessera::python::AdapterUses> {
  NB_TYPE_CASTER(
      tessera::python::AdapterUses,
      const_name(
          "Adapter | collections.abc.Sequence[Adapter | tuple[Adapter, float] | tuple[Adapter, float, int | None]]"))

  bool from_python(handle object, std::uint8_t, cleanup_list*) noexcept {
    try {
      return tessera::python::read_adapters(object, value);
    } catch (...) {
      PyErr_Clear();
      return false;
    }
  }
  static handle from_cpp(const tessera::python::AdapterUses& uses, rv_policy, cleanup_list*) noexcept {
    return uses.list.empty() ? make_tuple().release() : handle();  // the default of a parameter
  }
};

}  // namespace nanobind::detail
