// Opens the CUDA backend's device, and reserves and divides the backend's memory.
#include <algorithm>

#include "core/error.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/weights/packing.hpp"

namespace tessera::cuda {

namespace {

constexpr std::uint64_t kTableBytes = 1 << 20;  // bytes of a step's tables: room for the addresses of 131,072 pages

}  // namespace

CudaBackend::CudaBackend(Numerics numerics, Memory& host) noexcept
    : numerics_(numerics), host_(host), weights_(host), many_rows_(numerics != Numerics::invariant) {}

CudaBackend::~CudaBackend() = default;

Status CudaBackend::open(const CudaOptions& options) {
  TESSERA_TRY(
      device_,
      Device::open({.ordinal = options.device, .stream = options.stream, .driver_library = options.driver_library}));
  const Device::Scope scope(*device_);
  TESSERA_TRY_STATUS(scope.status());
  TESSERA_TRY(kernels_, KernelTable::load(*device_));
  TESSERA_TRY(kv_memory_, DeviceMemory::create(device_));
  return many_rows_.open(device_, options.blas_library);
}

bool CudaBackend::holds_kv(DType type) const noexcept {
  return std::find(kKvTypes.begin(), kKvTypes.end(), type) != kKvTypes.end();
}
bool CudaBackend::holds(DType type) const noexcept { return device_form_of(type) != DeviceForm::count; }

std::uint64_t CudaBackend::lay_out(const backend::WorkspaceShape& shape, std::byte* base) noexcept {
  std::uint64_t used = 0;
  const auto take = [&](std::uint64_t bytes) {
    std::byte* at =
        base == nullptr ? nullptr : reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + used);
    used += plane_aligned(bytes);
    return at;
  };
  for (std::size_t i = 0; i < backend::kActs; ++i) {
    const std::uint64_t rows = i == static_cast<std::size_t>(Act::logits) ? shape.output_rows : shape.rows;
    acts_[i].data = reinterpret_cast<float*>(take(rows * shape.columns[i] * sizeof(float)));
  }
  rows_.lay_out(shape, take);
  attention_.lay_out(shape, take);
  expert_feeds_.lay_out(shape, take);
  votes_.lay_out(shape, take);
  many_rows_.lay_out(shape, take);
  return used;
}

std::uint64_t CudaBackend::workspace_bytes(const backend::WorkspaceShape& shape) const noexcept {
  CudaBackend counting(numerics_, host_);
  return counting.lay_out(shape, nullptr) + table_bytes(shape);
}

// Returns the bytes of a step's tables: lists of rows, rotations, page addresses, tiles, draws.
std::uint64_t CudaBackend::table_bytes(const backend::WorkspaceShape& shape) noexcept {
  return plane_aligned(kTableBytes + shape.rows * (192 + shape.rope_dims * sizeof(float)));
}

std::uint64_t CudaBackend::host_workspace_bytes(const backend::WorkspaceShape& shape) const noexcept {
  return table_bytes(shape) + DeviceMemory::kHostBytes + VoteCounter::host_bytes(shape);
}

Status CudaBackend::reserve_workspace(const backend::WorkspaceShape& shape) {
  if (head_class(shape.max_key_dim, shape.max_value_dim) == 0) {
    return detail::make_error(ErrorCode::unsupported,
                              "heads of {} and {} values: the cuda backend's attention has at most {}",
                              shape.max_key_dim, shape.max_value_dim, kMostValues);
  }
  const std::uint64_t bytes = lay_out(shape, nullptr);
  TESSERA_TRY(workspace_, DeviceBuffer::allocate(device_, bytes, "the workspace"));
  (void)lay_out(shape, workspace_.data());
  max_rows_ = shape.rows;
  TESSERA_TRY_STATUS(votes_.reserve_host());
  TESSERA_TRY_STATUS(arena_.init(device_, table_bytes(shape)));
  return many_rows_.warm_up(weights_.shapes());
}

}  // namespace tessera::cuda
