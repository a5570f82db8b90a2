// The report of tessera-inspect on a model file, as text and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <tessera/engine.hpp>
#include <tessera/extend/files/model_file.hpp>

namespace tessera::inspect {

struct Total {
  std::uint64_t tensors = 0, values = 0, bytes = 0;
};

inline std::uint64_t values_of(const TensorInfo& tensor) noexcept {
  return tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * tensor.dims[3];
}

// Returns the totals of each type; the key "" has the total of all types.
inline std::map<std::string, Total> totals_of(const ModelSource& model) {
  std::map<std::string, Total> totals;
  for (const TensorInfo& tensor : model.tensors()) {
    for (const std::string& key : {std::string(to_string(tensor.dtype)), std::string()}) {
      Total& total = totals[key];
      ++total.tensors;
      total.values += values_of(tensor);
      total.bytes += tensor.bytes;
    }
  }
  return totals;
}

struct Sections {
  bool metadata = true, tensors = true;
  std::optional<Plan> plan;
};

// Return the report. Control characters in the file's texts are escaped, so that the texts cannot control a terminal.
std::string text_report(const ModelFile& file, const Sections& sections);
std::string json_report(const ModelFile& file, const Sections& sections);

// Return the parts of the report that are the same for all kinds of models.
std::string type_text(DType type);  // the type's name, or the number of a type that tessera does not read
std::string block(std::string_view text);  // a text of several lines, such as a chat template, in full
std::string cut(std::string_view text);  // a long text's beginning
std::string totals_text(const ModelSource& model);
std::string plan_text(const Plan& plan);
std::string plan_json(const Plan& plan);

// Returns one value without decoration: a string's bytes, a number, an array's elements one a line. Ends with a newline.
std::string raw_value(const GgufEntry& entry);
std::string json_value(const GgufEntry& entry);

}  // namespace tessera::inspect
