// Finds the quantised matrices of a folder, by its quantization_config.
#pragma once

#include <memory>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/input_rounding.hpp>

#include "files/safetensors/safetensors_folder.hpp"
#include "hub/config.hpp"
#include "hub/matrix.hpp"

namespace tessera::detail::hub {

struct QuantisationMethod;
struct QuantisationOptions;

class Quantisation {
 public:
  // Reads the options. Errors: unsupported, a method or an option is not implemented; corrupt_file.
  [[nodiscard]] static Result<Quantisation> read(const Config& config);

  [[nodiscard]] bool is_none() const noexcept { return method_ == nullptr; }
  // Returns the quantised matrix that takes the place of an unquantised tensor with the name `name` ("....q_proj.weight"); nullptr if the
  // folder has no quantised matrix of that name. Errors (the message names the tensor): corrupt_file; unsupported.
  [[nodiscard]] Result<std::shared_ptr<const Matrix>> find(const SafetensorsFolder& folder, std::string_view name) const;
  // To be called if the model uses no quantised matrix. Error: corrupt_file, the folder has none, and the method's folders always have some.
  [[nodiscard]] Status check_used(const SafetensorsFolder& folder) const;
  // Returns how the inputs of one matrix are rounded. `weight` is the first tensor of the matrix. Errors: unsupported, tessera does not
  // compute this rounding (the message names the key); corrupt_file, a scale is missing or is not a positive number.
  [[nodiscard]] Result<InputRounding> input_rounding(const SafetensorsFolder& folder, const SafetensorsTensor& weight) const;
  // Returns whether a tensor of that name belongs to quantised weights but is not needed to decode them: scales of activations, of keys
  // or of values. Such a tensor may be in the folder without being used.
  [[nodiscard]] bool is_beside(std::string_view name) const noexcept;

 private:
  const QuantisationMethod* method_ = nullptr;  // an element of the table in quantisation.cpp
  std::shared_ptr<const QuantisationOptions> options_;
};

}  // namespace tessera::detail::hub
