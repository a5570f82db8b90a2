// tessera.Adapter: a small change of a model's weights.
#include <filesystem>

#include <nanobind/stl/filesystem.h>

#include "calls.hpp"
#include "adapters.hpp"

namespace tessera::python {

namespace {

// Reads an element of a sequence: an adapter, (adapter, scale) or (adapter, scale, start).
bool read_use(nb::handle object, AdapterUse& use) {
  const auto read = [&](nb::handle one) {
    if (!nb::isinstance<AdapterHandle>(one)) return false;
    use.adapter = (*nb::inst_ptr<AdapterHandle>(one))->adapter;
    return true;
  };
  if (read(object)) return true;
  if (!nb::isinstance<nb::tuple>(object)) return false;
  const auto parts = nb::borrow<nb::tuple>(object);
  if (parts.size() < 2 || parts.size() > 3 || !read(parts[0]) || !nb::try_cast<float>(parts[1], use.scale))
    return false;
  if (parts.size() == 2 || nb::handle(parts[2]).is_none()) return true;
  return nb::try_cast<std::uint64_t>(parts[2], use.from.emplace());
}

std::string amount(std::uint64_t bytes) {
  return bytes < 10'000'000 ? std::to_string((bytes + 1023) / 1024) + " KiB" : std::to_string(bytes >> 20) + " MiB";
}

}  // namespace

bool read_adapters(nb::handle object, AdapterUses& to) {
  to.list.clear();
  if (nb::isinstance<AdapterHandle>(object)) return read_use(object, to.list.emplace_back());
  if (nb::isinstance<nb::str>(object) || nb::isinstance<nb::bytes>(object) || !nb::isinstance<nb::sequence>(object))
    return false;
  for (nb::handle one : nb::borrow<nb::sequence>(object)) {
    if (!read_use(one, to.list.emplace_back())) return false;
  }
  return true;
}

nb::list adapters_list(const std::shared_ptr<EngineBox>& engine, const std::vector<AdapterUse>& uses) {
  nb::list list;
  for (const AdapterUse& use : uses) {
    list.append(nb::make_tuple(AdapterHandle(std::make_shared<AdapterBox>(engine, use.adapter)), use.scale, use.from));
  }
  return list;
}

AdapterHandle load_adapter(const EngineHandle& engine, const std::filesystem::path& path) {
  auto loaded = take(interruptible([&](std::stop_token stop) {
    AdapterOptions options;
    options.stop = std::move(stop);
    return engine->engine.adapter(path, options);
  }));
  return AdapterHandle(std::make_shared<AdapterBox>(engine.box(), std::move(loaded)));
}

void bind_adapter(nb::module_& m) {
  nb::class_<AdapterHandle>(m, "Adapter", no_constructor(), nb::is_weak_referenceable(),
                            R"(A small change of a model's weights (LoRA): a style, a task or a language.

    pirate = engine.adapter("pirate.gguf")
    session = engine.session(adapters=[pirate])

Each session and each request has adapters of its own; sessions with different adapters are computed together. A function that has the parameter
`adapters` accepts an adapter or a list. An element of the list is an adapter, (adapter, scale) or (adapter, scale, start). scale multiplies the
change. start is the position of the first token that the adapter changes. Without a start this is position 0. Exception: an adapter with an
invocation starts where its invocation begins. Sessions and requests keep the adapters that they use alive. Any thread may use an adapter.)")
      .def_prop_ro(
          "name", [](const AdapterHandle& self) { return std::string(self->adapter.name()); },
          "The adapter's name, as its file says; may be empty.")
      .def_prop_ro(
          "base_name", [](const AdapterHandle& self) { return std::string(self->adapter.base_name()); },
          "Name of the model for which the adapter was made; may be empty.")
      .def_prop_ro(
          "bytes", [](const AdapterHandle& self) { return self->adapter.bytes(); }, "Bytes of memory that the adapter takes.")
      .def_prop_ro(
          "rank", [](const AdapterHandle& self) { return self->adapter.rank(); }, "The largest rank of the adapter's matrices.")
      .def_prop_ro(
          "matrices", [](const AdapterHandle& self) { return self->adapter.matrices(); },
          "How many of the model's matrices the adapter changes.")
      .def_prop_ro(
          "invocation",
          [](const AdapterHandle& self) {
            const auto tokens = self->adapter.invocation();
            return Tokens(tokens.begin(), tokens.end());
          },
          "The tokens that activate the adapter (aLoRA), from the first of them on. Empty: the adapter is active from the first token of a text on.")
      .def_prop_ro("engine", [](const AdapterHandle& self) { return EngineHandle(self->engine); })
      .def(
          "__eq__",
          [](const AdapterHandle& self, nb::handle other) {
            if (!nb::isinstance<AdapterHandle>(other)) return false;
            const AdapterHandle& of = *nb::inst_ptr<AdapterHandle>(other);
            return of->engine == self->engine && of->adapter.content() == self->adapter.content();
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const AdapterHandle& self) { return static_cast<std::size_t>(self->adapter.content().low >> 1); })
      .def("__repr__", [](const AdapterHandle& self) {
        const Adapter& a = self->adapter;
        const std::string name(a.name());
        return "<tessera.Adapter " + (name.empty() ? std::string() : "\"" + name + "\", ") + "rank " +
               std::to_string(a.rank()) + ", " + std::to_string(a.matrices()) + " matrices, " + amount(a.bytes()) +
               (a.invocation().empty()
                    ? ""
                    : ", with an invocation of " + std::to_string(a.invocation().size()) + " tokens") +
               ">";
      });
}

}  // namespace tessera::python
