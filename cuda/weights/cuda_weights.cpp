// The CUDA backend's loading: opening the device, reserving its memory, and packing and copying weights.
#include <algorithm>
#include <array>
#include <iterator>

#include "core/error.hpp"
#include "cuda/cuda_backend.hpp"
#include "cuda/weights/packing.hpp"
#include "formats/formats.hpp"

namespace tessera::cuda {

namespace {

constexpr std::uint64_t kAlignment = kPlaneAlignment;
constexpr std::uint64_t kChunkBytes = 8 << 20;                       // bytes of a file that are read and packed at a time
// Bytes for partial results of attention: enough to split the tiles of a decode step whose rows see 32,768 keys.
constexpr std::uint64_t kMostPartials = std::uint64_t{16} << 20;
// The most bytes for weights that are unpacked to f16. If a product's weights need more, they are unpacked in pieces.
constexpr std::uint64_t kMostHalfWeights = std::uint64_t{64} << 20;
constexpr std::uint64_t kLeastHalfWeights = 16 << 10;  // bytes for the matrices of warm_up_gemm()
constexpr std::uint64_t kTableBytes = 1 << 20;         // bytes of a step's tables: room for the addresses of 131,072 pages
constexpr std::uint64_t kMostOutputs = 65535 * 32;     // the most outputs that the y dimension of a grid can count (linear_plan.hpp)

constexpr std::uint64_t aligned(std::uint64_t bytes) noexcept { return round_up(bytes, kAlignment); }

std::uint64_t file_row_bytes(const backend::MatrixShape& shape) noexcept {
  const auto block = formats::block_of(shape.dtype);
  return block ? shape.inputs / block->values * block->bytes : 0;
}

// Returns how many rows of a matrix are read and packed at a time.
std::uint64_t chunk_rows(const backend::MatrixShape& shape) noexcept {
  const std::uint64_t fit = std::max<std::uint64_t>(kChunkBytes / std::max<std::uint64_t>(file_row_bytes(shape), 1), 1);
  return std::min(fit, std::max<std::uint64_t>(shape.rows(), 1));
}

}  // namespace

// Buffers for loading. While one chunk of weights is being copied to the device, the next chunk is packed into the other buffer.
struct CudaBackend::Staging {
  explicit Staging(std::shared_ptr<const Device> of) noexcept : device(std::move(of)) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() {
    const Device::Scope scope(*device);
    (void)device->synchronize();
    for (const CUevent event : copied) {
      if (event != nullptr) (void)device->api().cuEventDestroy(event);
    }
  }

  std::shared_ptr<const Device> device;
  Buffer rows;  // rows in the file's format
  std::array<PinnedBuffer, 2> packed;
  std::array<CUevent, 2> copied{};
  std::size_t next = 0;
};

CudaBackend::CudaBackend(Numerics numerics, Memory& host) noexcept : numerics_(numerics), host_(host) {}

CudaBackend::~CudaBackend() = default;

Status CudaBackend::open(const CudaOptions& options) {
  TESSERA_TRY(
      device_,
      Device::open({.ordinal = options.device, .stream = options.stream, .driver_library = options.driver_library}));
  const Device::Scope scope(*device_);
  TESSERA_TRY_STATUS(scope.status());
  TESSERA_TRY(kernels_, KernelTable::load(*device_));
  TESSERA_TRY(kv_memory_, DeviceMemory::create(device_));
  if (!wants_gemm()) return {};
  auto gemm = Gemm::create(device_, options.blas_library);
  if (gemm) {
    gemm_ = *std::move(gemm);
  } else if (gemm.error().code() == ErrorCode::out_of_memory) {
    return std::move(gemm).error();
  } else {
    give_up_gemm(gemm.error().message());
  }
  return {};
}

// Switches to our own kernels for all products, because cuBLASLt cannot be used. explain() gives the reason; engines that must not fall
// back refuse to load.
void CudaBackend::give_up_gemm(std::string why) noexcept {
  no_gemm_ = std::move(why);
  gemm_.reset();
}

// Computes a small product of each type that the weights will need. cuBLASLt loads code and allocates memory at its first products; this
// way it does so while the model is loaded, and errors show now.
Status CudaBackend::warm_up_gemm() {
  constexpr std::uint64_t kSize = 16;
  std::byte* at = half_weights_;
  Status status;
  for (const GemmType type : {GemmType::f32, GemmType::f16, GemmType::bf16}) {
    const bool used = std::any_of(shapes_.begin(), shapes_.end(), [&](const MatrixShape& shape) {
      return gemm_type(device_form_of(shape.dtype)) == type;
    });
    if (!used || !status) continue;
    status = gemm_->run({.type = type,
                         .rows = kSize,
                         .outputs = kSize,
                         .inputs = kSize,
                         .x = at,
                         .w = at + kLeastHalfWeights / 4,
                         .y = reinterpret_cast<float*>(at + kLeastHalfWeights / 2),
                         .x_stride = kSize,
                         .w_stride = kSize,
                         .y_stride = kSize});
  }
  if (!status && status.error().code() == ErrorCode::out_of_memory) return status;
  TESSERA_TRY_STATUS(device_->synchronize());
  if (!status) give_up_gemm(status.error().message());
  return {};
}

bool CudaBackend::holds_kv(DType type) const noexcept {
  return std::find(kKvTypes.begin(), kKvTypes.end(), type) != kKvTypes.end();
}
bool CudaBackend::holds(DType type) const noexcept { return device_form_of(type) != DeviceForm::count; }

std::uint64_t CudaBackend::matrix_bytes(const MatrixShape& shape) const noexcept {
  return packed_bytes(device_form_of(shape.dtype), shape.rows(), shape.inputs);
}

std::uint64_t CudaBackend::vector_bytes(std::uint64_t n) const noexcept { return aligned(n * sizeof(float)); }

std::uint64_t CudaBackend::staging_bytes(const MatrixShape& shape) const noexcept {
  const std::uint64_t rows = chunk_rows(shape);
  // One buffer of rows and two buffers of packed weights are used for all matrices, so each must fit the largest matrix. Three times the
  // larger of the two sizes is enough.
  return 3 * std::max(aligned(rows * file_row_bytes(shape)),
                      aligned(cuda::staging_bytes(device_form_of(shape.dtype), shape.inputs, rows)));
}

Status CudaBackend::reserve_weights(std::uint64_t bytes, std::uint64_t staging) {
  TESSERA_TRY(weights_, DeviceBuffer::allocate(device_, bytes, "weights"));
  staging_ = std::make_unique<Staging>(device_);
  TESSERA_TRY(staging_->rows, Buffer::allocate(host_, staging / 3, "reading weights"));
  const Device::Scope scope(*device_);
  for (std::size_t i = 0; i < 2; ++i) {
    TESSERA_TRY(staging_->packed[i], PinnedBuffer::allocate(device_, staging / 3, "weights on their way"));
    TESSERA_TRY_STATUS(
        device_->check(device_->api().cuEventCreate(&staging_->copied[i], CU_EVENT_DISABLE_TIMING), "make an event"));
  }
  return {};
}

void CudaBackend::finish_loading() noexcept { staging_.reset(); }

Result<CUdeviceptr> CudaBackend::take_weights(std::uint64_t bytes) noexcept {
  if (bytes > weights_.size() - weights_used_) {
    return detail::make_error(ErrorCode::internal, "weights take more memory than was planned");
  }
  const CUdeviceptr at = weights_.address() + weights_used_;
  weights_used_ += bytes;
  return at;
}

Result<const backend::Matrix*> CudaBackend::add_matrix(const MatrixShape& shape, const backend::RowReader& read) {
  const DeviceForm form = device_form_of(shape.dtype);
  if (form == DeviceForm::count || !fits_device_matrix(shape.rows(), shape.inputs) || shape.outputs > kMostOutputs) {
    return detail::make_error(ErrorCode::unsupported, "the cuda backend cannot hold a {} matrix of {} x {}",
                              to_string(shape.dtype), shape.outputs, shape.inputs);
  }
  TESSERA_TRY(const CUdeviceptr address, take_weights(matrix_bytes(shape)));
  const Device::Scope scope(*device_);
  TESSERA_TRY_STATUS(scope.status());
  const DeviceMatrix matrix =
      device_matrix(form, shape.rows(), shape.inputs, reinterpret_cast<const std::byte*>(address));
  const std::uint64_t step = chunk_rows(shape), row_bytes = file_row_bytes(shape);
  for (std::uint64_t first = 0; first < shape.rows(); first += step) {
    const std::uint64_t count = std::min(step, shape.rows() - first);
    const std::span<std::byte> rows = staging_->rows.bytes().first(count * row_bytes);
    TESSERA_TRY_STATUS(read(first, count, rows));
    const std::size_t i = staging_->next;
    staging_->next = 1 - i;
    // Waits until the chunk that was in this buffer before has been copied.
    TESSERA_TRY_STATUS(device_->check(device_->api().cuEventSynchronize(staging_->copied[i]), "copy weights"));
    std::byte* packed = staging_->packed[i].data();
    pack_rows(shape.dtype, matrix, rows.data(), count, packed);
    for (const Stretch& stretch : stretches(matrix, first, count)) {
      TESSERA_TRY_STATUS(device_->to_device(address + stretch.to, packed + stretch.from, stretch.bytes));
    }
    TESSERA_TRY_STATUS(
        device_->check(device_->api().cuEventRecord(staging_->copied[i], device_->stream()), "copy weights"));
  }
  shapes_.push_back(shape);
  auto weight = std::make_unique<DeviceWeight>(DeviceWeight{matrix, static_cast<std::uint32_t>(shape.count)});
  return reinterpret_cast<const Matrix*>(matrices_.emplace_back(std::move(weight)).get());
}

Status CudaBackend::scale_products(const Matrix& weight, std::span<const float> factors) {
  if (matrices_.empty() || &weight_of(weight) != matrices_.back().get() || factors.size() != weight_of(weight).count) {
    return detail::make_error(ErrorCode::internal, "{} factors for other matrices than those that were added last", factors.size());
  }
  TESSERA_TRY(const Vector* const kept, add_vector(factors));
  matrices_.back()->factors = vector_of(*kept).data;
  return {};
}

Result<const backend::Vector*> CudaBackend::add_vector(std::span<const float> values) {
  TESSERA_TRY(const CUdeviceptr address, take_weights(vector_bytes(values.size())));
  const Device::Scope scope(*device_);
  TESSERA_TRY_STATUS(device_->to_device(address, values.data(), values.size_bytes()));
  TESSERA_TRY_STATUS(device_->synchronize());  // waits for the copy, because the caller may free `values` afterwards
  vectors_.push_back(std::make_unique<DeviceVector>(
      DeviceVector{.data = reinterpret_cast<const float*>(address), .n = values.size()}));
  return reinterpret_cast<const Vector*>(vectors_.back().get());
}

std::uint64_t CudaBackend::lay_out(const backend::WorkspaceShape& shape, std::byte* base) noexcept {
  std::uint64_t used = 0;
  const auto take = [&](std::uint64_t bytes) {
    std::byte* at =
        base == nullptr ? nullptr : reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + used);
    used += aligned(bytes);
    return at;
  };
  std::uint64_t widest = 0;  // columns of the widest input of a product
  for (std::size_t i = 0; i < backend::kActs; ++i) {
    const bool logits = i == static_cast<std::size_t>(Act::logits);
    const std::uint64_t rows = logits ? shape.output_rows : shape.rows;
    acts_[i].data = reinterpret_cast<float*>(take(rows * shape.columns[i] * sizeof(float)));
    if (!logits) widest = std::max(widest, shape.columns[i]);
  }
  embedding_dim_ = shape.columns[static_cast<std::size_t>(Act::x)];
  embeddings_ = reinterpret_cast<float*>(take(shape.rows * embedding_dim_ * sizeof(float)));
  const std::uint64_t heads = shape.columns[static_cast<std::size_t>(Act::attn)];
  partial_floats_ = std::min(kMostPartials, heads * sizeof(float) * 4096) / sizeof(float);
  partials_ = reinterpret_cast<float*>(take(partial_floats_ * sizeof(float)));
  expert_feeds_.lay_out(shape, take);
  votes_.lay_out(shape, take);
  if (wants_gemm()) {
    half_rows_ = take(shape.rows * half_stride(widest) * 2);
    half_scales_ = reinterpret_cast<float*>(take(shape.rows * sizeof(float)));
    const std::uint64_t outputs = std::max(widest, shape.columns[static_cast<std::size_t>(Act::logits)]);
    // At least 64 outputs, the smallest piece in which weights are unpacked.
    half_weight_bytes_ =
        std::max({std::min(kMostHalfWeights, widest * round_up(outputs, 64) * 2), widest * 64 * 2, kLeastHalfWeights});
    half_weights_ = take(half_weight_bytes_);
    gemm_workspace_ = take(kGemmWorkspace);
  }
  return used;
}

std::uint64_t CudaBackend::workspace_bytes(const backend::WorkspaceShape& shape) const noexcept {
  CudaBackend counting(numerics_, host_);
  return counting.lay_out(shape, nullptr) + table_bytes(shape);
}

// Returns the bytes of a step's tables: lists of rows, rotations, page addresses, tiles, draws.
std::uint64_t CudaBackend::table_bytes(const backend::WorkspaceShape& shape) noexcept {
  return aligned(kTableBytes + shape.rows * (192 + shape.rope_dims * sizeof(float)));
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
  if (gemm_ == nullptr) return {};
  const Device::Scope scope(*device_);
  gemm_->set_workspace(gemm_workspace_);
  return warm_up_gemm();
}

}  // namespace tessera::cuda
