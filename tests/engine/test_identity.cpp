// What decides a sequence's keys and values: the whole spec of its model, field by field.
#include <type_traits>

#include "engine/models.hpp"
#include "model/spec/spec_fields.hpp"
#include "model/spec/spec_text.hpp"

namespace test_identity {

using namespace tessera;
using namespace tessera::test;
using detail::Counts;
using detail::spec_text;

namespace {

template <class T>
void change(T& value) {
  if constexpr (std::is_enum_v<T>) value = static_cast<T>(static_cast<int>(value) + 1);
  else if constexpr (std::is_same_v<T, bool>) value = !value;
  else if constexpr (std::is_arithmetic_v<T>) value = value * 2 + 3;  // another one, of those that defaults are
  else if constexpr (std::is_same_v<T, std::string>) value += "x";
  else value.push_back({});
}

// Changes each field of `part`, which is a part of `spec`, and back.
template <class Part>
void check_fields(const ModelSpec& spec, const Part& part) {
  const std::string before = spec_text(spec);
  std::apply([&](const auto&... fields) {
    const auto check = [&](const auto& field) {
      using T = std::remove_cvref_t<decltype(field.value)>;
      INFO(field.name);
      const T saved = field.value;
      change(const_cast<T&>(field.value));
      CHECK((spec_text(spec) != before) == (field.counts != Counts::no));
      const_cast<T&>(field.value) = saved;
    };
    (check(fields), ...);
  }, detail::fields_of(part));
  CHECK(spec_text(spec) == before);
}

}  // namespace

TEST_CASE("every field of a spec that counts is in a model's identity", "[identity]") {
  ModelSpec spec = load_golden("mistral").spec();
  REQUIRE(spec.ropes.size() == 1);
  REQUIRE(spec.layers.size() >= 2);
  check_fields(spec, spec);
  check_fields(spec, spec.ropes.front());
  for (const LayerSpec& layer : spec.layers) check_fields(spec, layer);
}

TEST_CASE("a model's identity says each field in a line, layers of one kind together", "[identity]") {
  ModelSpec spec = load_golden("llama-gqa").spec();
  CHECK_THAT(spec_text(spec), Catch::Contains("\nlayers.n_heads 6*2\n") && Catch::Contains("\nropes.theta 10000\n"));
  spec.layers.resize(5, spec.layers.front());
  spec.layers[2].window = 7;
  CHECK_THAT(spec_text(spec), Catch::Contains("\nlayers.window 0*2 7 0*2\n"));
}

}  // namespace test_identity
