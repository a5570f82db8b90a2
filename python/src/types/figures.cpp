// Figures as dicts, with the same names as in the JSON of the C ABI.
#include <cmath>
#include <concepts>
#include <limits>
#include <map>

#include "types/boxes.hpp"
#include "values/figure_fields.hpp"

namespace tessera::python {

namespace {

// Collects the fields of figures as a dict. None stands for a number that is not finite, and for a time that has not
// come yet.
struct FieldsDict {
  nb::dict dict;

  template <class T>
  void operator()(const char* name, const T& value) {
    dict[name] = object_of(value);
  }

  template <std::unsigned_integral T>
  static nb::object object_of(T value) {
    return nb::cast(value);
  }
  static nb::object object_of(bool value) { return nb::cast(value); }
  static nb::object object_of(double value) { return std::isfinite(value) ? nb::cast(value) : nb::none(); }
  static nb::object object_of(fields::Moment moment) {
    return moment.seconds < 0.0 ? nb::none() : nb::cast(moment.seconds);
  }
  static nb::object object_of(const Histogram& histogram) { return of(histogram); }
  static nb::object object_of(const std::map<std::string, TenantFigures, std::less<>>& tenants) {
    nb::dict dict;
    for (const auto& [name, tenant] : tenants) dict[nb::str(name.data(), name.size())] = of(tenant);
    return dict;
  }

  template <class Figures>
  static nb::dict of(const Figures& figures) {
    FieldsDict made;
    fields::each(figures, made);
    return made.dict;
  }
};

}  // namespace

nb::dict figures_dict(const Figures& figures) { return FieldsDict::of(figures); }
nb::dict figures_dict(const RequestFigures& figures) { return FieldsDict::of(figures); }
nb::dict figures_dict(const SchedulerFigures& figures) { return FieldsDict::of(figures); }
nb::dict kv_figures_dict(const Engine& engine) {
  const auto figures = unlocked([&] { return fields::EngineKv(engine); });
  nb::dict dict = FieldsDict::of(figures);
  if (figures.room_bytes == std::numeric_limits<std::uint64_t>::max()) dict["room_bytes"] = nb::none();  // no budget
  return dict;
}

}  // namespace tessera::python
