#include "cuda/weights/weight_store.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/guard.hpp"
#include "cuda/weights/packing.hpp"
#include "formats/formats.hpp"

namespace tessera::cuda {

namespace {

constexpr std::uint64_t kChunkBytes = 8 << 20;      // bytes of a file that are read and packed at a time
constexpr std::uint64_t kMostOutputs = 65535 * 32;  // the most outputs that the y dimension of a grid can count (linear_plan.hpp)

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
struct WeightStore::Staging {
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

WeightStore::WeightStore(Memory& host) noexcept : host_(host) {}

WeightStore::~WeightStore() = default;

std::uint64_t WeightStore::matrix_bytes(const backend::MatrixShape& shape) noexcept {
  return packed_bytes(device_form_of(shape.dtype), shape.rows(), shape.inputs);
}

std::uint64_t WeightStore::vector_bytes(std::uint64_t n) noexcept { return plane_aligned(n * sizeof(float)); }

std::uint64_t WeightStore::staging_bytes(const backend::MatrixShape& shape) noexcept {
  const std::uint64_t rows = chunk_rows(shape);
  // The bytes for the three buffers through which matrices are loaded one after another: one for rows of the file, two for packed weights.
  // Each buffer must be large enough for any matrix. Here all three get the larger of the two sizes.
  return 3 * std::max(plane_aligned(rows * file_row_bytes(shape)),
                      plane_aligned(cuda::staging_bytes(device_form_of(shape.dtype), shape.inputs, rows)));
}

Status WeightStore::reserve(std::shared_ptr<const Device> device, std::uint64_t bytes, std::uint64_t staging) {
  device_ = std::move(device);
  TESSERA_TRY(memory_, DeviceBuffer::allocate(device_, bytes, "weights"));
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

void WeightStore::finish_loading() noexcept { staging_.reset(); }

Result<CUdeviceptr> WeightStore::take(std::uint64_t bytes) noexcept {
  if (bytes > memory_.size() - used_) {
    return detail::make_error(ErrorCode::internal, "weights take more memory than was planned");
  }
  const CUdeviceptr at = memory_.address() + used_;
  used_ += bytes;
  return at;
}

Result<const backend::Matrix*> WeightStore::add_matrix(const backend::MatrixShape& shape, const backend::RowReader& read) {
  const DeviceForm form = device_form_of(shape.dtype);
  if (form == DeviceForm::count || !fits_device_matrix(shape.rows(), shape.inputs) || shape.outputs > kMostOutputs) {
    return detail::make_error(ErrorCode::unsupported, "the cuda backend cannot hold a {} matrix of {} x {}",
                              to_string(shape.dtype), shape.outputs, shape.inputs);
  }
  TESSERA_TRY(const CUdeviceptr address, take(matrix_bytes(shape)));
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
  return reinterpret_cast<const backend::Matrix*>(matrices_.emplace_back(std::move(weight)).get());
}

Status WeightStore::scale_products(const backend::Matrix& weight, std::span<const float> factors) {
  if (matrices_.empty() || &weight_of(weight) != matrices_.back().get() || factors.size() != weight_of(weight).count) {
    return detail::make_error(ErrorCode::internal, "{} factors for other matrices than those that were added last", factors.size());
  }
  TESSERA_TRY(const backend::Vector* const kept, add_vector(factors));
  matrices_.back()->factors = vector_of(*kept).data;
  return {};
}

Result<const backend::Vector*> WeightStore::add_vector(std::span<const float> values) {
  TESSERA_TRY(const CUdeviceptr address, take(vector_bytes(values.size())));
  const Device::Scope scope(*device_);
  TESSERA_TRY_STATUS(device_->to_device(address, values.data(), values.size_bytes()));
  TESSERA_TRY_STATUS(device_->synchronize());  // waits for the copy, because the caller may free `values` afterwards
  vectors_.push_back(std::make_unique<DeviceVector>(
      DeviceVector{.data = reinterpret_cast<const float*>(address), .n = values.size()}));
  return reinterpret_cast<const backend::Vector*>(vectors_.back().get());
}

}  // namespace tessera::cuda
