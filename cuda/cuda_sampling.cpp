// CudaBackend::sample(): draws tokens on the device, so that no logits are copied to the host.
#include "core/logit_errors.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/kernels/sampling.hpp"

namespace tessera::cuda {

Status CudaBackend::sample(Act logits, std::size_t first, std::span<Token> out) {
  const Device::Scope scope(*device_);
  const Activation& at = act(logits);
  auto* on_device = const_cast<SampleResult*>(drawn_.device) +
                    first;  // the kernel may write there: begin() has uploaded the arena already
  SampleResult* on_host = drawn_.host + first;
  TESSERA_TRY_STATUS(launch(kernels_.sample_tokens, {.x = static_cast<std::uint32_t>(out.size())}, kSampleThreads, 0,
                            SampleArgs{.logits = at.data,
                                       .rows = draws_ + first,
                                       .results = on_device,
                                       .vocab = static_cast<std::uint32_t>(at.columns)}));
  TESSERA_TRY_STATUS(
      device_->to_host(on_host, reinterpret_cast<CUdeviceptr>(on_device), out.size() * sizeof(SampleResult)));
  TESSERA_TRY_STATUS(device_->synchronize());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const SampleResult& result = on_host[i];
    if (result.status == SampleStatus::nan) return detail::nan_logit_error(static_cast<std::uint64_t>(result.token));
    if (result.status == SampleStatus::nothing) return detail::no_logit_error();
    out[i] = result.token;
  }
  return {};
}

}  // namespace tessera::cuda
