#include "plan.hpp"

#include <fmt/format.h>

#include <tessera/extend/formats/rows.hpp>

namespace tessera::quantize {

namespace {

bool ends_with_weight(std::string_view name) { return name.ends_with(".weight"); }

bool is_quantised(DType type) { return formats::block_of(type)->values > 1; }

}  // namespace

bool is_delicate(std::string_view name) noexcept {
  return name == "position_embd.weight" || name == "token_types.weight" || name.ends_with(".ffn_gate_inp.weight") ||
         name.ends_with(".ssm_conv1d.weight");
}

Result<std::vector<TensorPlan>> make_plan(const ModelSource& model, const Options& options) {
  const bool tied = model.find_tensor("output.weight") == nullptr;
  const DType format = options.target.format;
  const tool::Rules rules(tool::mixed_model(model), options.target);
  const DType output = options.output.value_or(rules.output());
  const DType embedding = options.embedding.value_or(tied ? output : format);
  std::vector<TensorPlan> steps;
  for (const GgufTensor& tensor : model.tensors()) {
    const auto from = formats::block_of(tensor.dtype);
    if (!from) return Error(ErrorCode::unsupported, "its format is not one of tessera's", std::string(tensor.name));
    const std::uint64_t values = tensor.bytes / from->bytes * from->values;
    const bool matrix = (tensor.n_dims == 2 || tensor.n_dims == 3) && ends_with_weight(tensor.name) && !is_delicate(tensor.name);
    DType wanted = rules.format_of(tensor.name), to = tensor.dtype;
    std::string note;
    if (matrix) {
      if (tensor.name == "token_embd.weight") wanted = embedding;
      if (tensor.name == "output.weight") wanted = output;
      to = tool::fitting(wanted, tensor.dims[0]);
      if (to != wanted)
        note = fmt::format("{} instead of {}: a row of {} values is not whole blocks", to_string(to), to_string(wanted),
                           tensor.dims[0]);
    } else if (tensor.n_dims == 1 || format == DType::f32) {
      to = DType::f32;
    }
    if (is_quantised(tensor.dtype) && to != tensor.dtype && !options.requantize) {
      return Error(ErrorCode::invalid_argument,
                   fmt::format("is {} already, and quantising twice loses more than quantising once: start from an "
                               "F32, F16 or BF16 model, or pass --requantize",
                               to_string(tensor.dtype)),
                   std::string(tensor.name));
    }
    const auto block = *formats::block_of(to);
    steps.push_back({&tensor, to, values, values / block.values * block.bytes, std::move(note)});
  }
  return steps;
}

}  // namespace tessera::quantize
