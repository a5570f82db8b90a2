// The CUDA backend's recurrent operations.
#include "cuda/cuda_backend.hpp"

namespace tessera::cuda {

namespace {

PrepareStateArgs vectors_of(const backend::Recurrence& how) noexcept {
  PrepareStateArgs args{};
  args.rate = vector_of(*how.rate).data;
  args.step_bias = vector_of(*how.step_bias).data;
  return args;
}

}  // namespace

Status CudaBackend::convolve(const backend::Convolution& how, Act x) {
  const Device::Scope scope(*device_);
  const Activation& at = written(x);
  if (rows_.count() == 0) return {};
  return recurrent_.convolve(*device_, kernels_, how.layer,
                             {.states = {},
                              .weight = vector_of(*how.weight).data,
                              .bias = values_of(how.bias),
                              .x = at.data,
                              .columns = static_cast<std::uint32_t>(at.columns),
                              .width = static_cast<std::uint32_t>(vector_of(*how.weight).n / at.columns),
                              .silu = how.silu ? 1u : 0u,
                              .padding = 0});
}

Status CudaBackend::delta_rule(const backend::Recurrence& how, Act qkv, Act steps, Act betas, Act out) {
  const Device::Scope scope(*device_);
  for (const Act id : {qkv, steps, betas}) (void)written(id);
  written(out).columns = std::size_t{how.heads} * how.values;
  if (rows_.count() == 0) return {};
  return recurrent_.delta_rule(*device_, kernels_, how, rows_of(qkv), rows_of(steps), rows_of(betas), vectors_of(how), act(out).data,
                               rows_.count());
}

Status CudaBackend::scan(const backend::Recurrence& how, Act xbc, Act steps, Act decays, Act out) {
  const Device::Scope scope(*device_);
  (void)written(steps);
  written(decays).columns = how.heads;
  written(out).columns = std::size_t{how.heads} * how.values;
  if (rows_.count() == 0) return {};
  return recurrent_.scan(*device_, kernels_, how, rows_of(xbc), rows_of(steps), rows_of(decays), vectors_of(how), vector_of(*how.skip).data,
                         act(out).data, rows_.count());
}

}  // namespace tessera::cuda
