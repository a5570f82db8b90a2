// Options that Python passes as words. There is a table for each option, and the error for a wrong word lists all
// words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/tessera.hpp>

#include "types/errors.hpp"

namespace tessera::python {

template <class T>
struct Named {
  std::string_view name;
  T value;
};

// Returns the value of a word. Throws InvalidArgument, which lists all words, if the table does not have the word.
template <class T, std::size_t n>
T value_named(std::string_view option, std::string_view name, const Named<T> (&table)[n]) {
  std::string known;
  for (const Named<T>& one : table) {
    if (one.name == name) return one.value;
    known += (known.empty() ? "\"" : ", \"") + std::string(one.name) + "\"";
  }
  raise(ErrorCode::invalid_argument, std::string(option) + "=\"" + std::string(name) + "\": choose one of " + known);
}

template <class T, std::size_t n>
std::string_view name_of(T value, const Named<T> (&table)[n]) {
  for (const Named<T>& one : table) {
    if (one.value == value) return one.name;
  }
  return "?";
}

DType kv_type_named(std::string_view option, std::string_view name);
Numerics numerics_named(std::string_view name);
Activations activations_named(std::string_view name);
InstructionSet instruction_set_named(std::string_view name);
JsonSchemaOptions json_options(std::string_view whitespace, std::string_view numbers, std::string_view order,
                               std::string_view formats, std::string_view unsupported);

// Returns the word of a reason; None if there is no reason.
nb::object finish_name(FinishReason reason);

}  // namespace tessera::python
