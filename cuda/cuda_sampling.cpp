// CudaBackend::sample(): draws tokens on the device, so that no logits are copied to the host.
#include "core/logit_errors.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/kernels/sampling.hpp"

namespace tessera::cuda {

Status CudaBackend::sample(Act logits, std::span<const backend::SampleRow> rows, std::span<Token> out) {
  const Device::Scope scope(*device_);
  const Activation& at = act(logits);
  TESSERA_TRY(const backend::SampleRow* draws, arena_.add<backend::SampleRow>(rows));
  TESSERA_TRY(const auto results, arena_.add<SampleResult>(rows.size()));
  TESSERA_TRY_STATUS(arena_.flush());
  auto* on_device = const_cast<SampleResult*>(results.device);  // the kernel may write there: flush() has uploaded the arena already
  TESSERA_TRY_STATUS(launch(
      kernels_.sample_tokens, {.x = static_cast<std::uint32_t>(rows.size())}, kSampleThreads, 0,
      SampleArgs{
          .logits = at.data, .rows = draws, .results = on_device, .vocab = static_cast<std::uint32_t>(at.columns)}));
  TESSERA_TRY_STATUS(
      device_->to_host(results.host, reinterpret_cast<CUdeviceptr>(on_device), rows.size() * sizeof(SampleResult)));
  TESSERA_TRY_STATUS(device_->synchronize());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SampleResult& result = results.host[i];
    if (result.status == SampleStatus::nan) return detail::nan_logit_error(static_cast<std::uint64_t>(result.token));
    if (result.status == SampleStatus::nothing) return detail::no_logit_error();
    out[i] = result.token;
  }
  return {};
}

}  // namespace tessera::cuda
