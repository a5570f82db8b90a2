#include "cuda/products/gemm.hpp"

#include "core/error.hpp"

namespace tessera::cuda {

namespace {

// How many plans of cuBLASLt are kept at most; beyond that all are dropped. One matrix needs a plan for each number of rows with which it
// is multiplied. There are few such numbers: usually the rows of a full step, and the rows of the last step of each prompt.
constexpr std::size_t kMostPlans = 512;

cudaDataType_t type_of(GemmType type) noexcept {
  return type == GemmType::f32 ? CUDA_R_32F : type == GemmType::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

}  // namespace

struct Gemm::Plan {
  explicit Plan(const BlasApi& of) noexcept : api(of) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (w != nullptr) (void)api.cublasLtMatrixLayoutDestroy(w);
    if (x != nullptr) (void)api.cublasLtMatrixLayoutDestroy(x);
    if (y != nullptr) (void)api.cublasLtMatrixLayoutDestroy(y);
    if (product != nullptr) (void)api.cublasLtMatmulDescDestroy(product);
  }

  const BlasApi& api;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
};

Result<std::unique_ptr<Gemm>> Gemm::create(std::shared_ptr<const Device> device, const std::string& library) {
  TESSERA_TRY(auto api, load_blas_api(library));
  std::unique_ptr<Gemm> gemm(new Gemm(std::move(device), std::move(api)));
  const Device::Scope scope(*gemm->device_);
  TESSERA_TRY_STATUS(scope.status());
  TESSERA_TRY_STATUS(gemm->check(gemm->api_->cublasLtCreate(&gemm->handle_), "start"));
  gemm->version_ = gemm->api_->cublasLtGetVersion();
  return gemm;
}

Gemm::Gemm(std::shared_ptr<const Device> device, std::shared_ptr<const BlasApi> api) noexcept
    : device_(std::move(device)), api_(std::move(api)) {}

Gemm::~Gemm() {
  const Device::Scope scope(*device_);
  plans_.clear();
  if (handle_ != nullptr) (void)api_->cublasLtDestroy(handle_);
}

Status Gemm::check(cublasStatus_t status, const char* doing) const {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  const ErrorCode code = status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::device_error;
  return detail::make_error(code, "cuBLAS failed to {}: {} ({})", doing, api_->cublasLtGetStatusString(status),
                            static_cast<int>(status));
}

// cuBLASLt works in column-major order. A row-major matrix [rows][n] is the column-major matrix [n][rows], so the product is computed
// transposed: y^T = (w^T)^T x^T.
Result<const Gemm::Plan*> Gemm::plan_of(const GemmCall& call) {
  const Shape shape{call.type, call.rows, call.outputs, call.inputs, call.x_stride, call.w_stride, call.y_stride};
  if (const auto found = plans_.find(shape); found != plans_.end()) return found->second.get();
  if (plans_.size() >= kMostPlans) plans_.clear();
  auto plan = std::make_unique<Plan>(*api_);
  const cudaDataType_t type = type_of(call.type);
  // CUBLAS_COMPUTE_32F is plain f32 arithmetic: no TF32 for F32 inputs.
  TESSERA_TRY_STATUS(
      check(api_->cublasLtMatmulDescCreate(&plan->product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe a product"));
  const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
  TESSERA_TRY_STATUS(check(
      api_->cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
      "describe a product"));
  TESSERA_TRY_STATUS(
      check(api_->cublasLtMatmulDescSetAttribute(plan->product, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof plain),
            "describe a product"));
  const auto layout = [&](cublasLtMatrixLayout_t& at, cudaDataType_t of, std::uint64_t rows, std::uint64_t columns,
                          std::uint64_t stride) {
    return check(api_->cublasLtMatrixLayoutCreate(&at, of, rows, columns, static_cast<std::int64_t>(stride)),
                 "describe a matrix");
  };
  TESSERA_TRY_STATUS(layout(plan->w, type, call.inputs, call.outputs, call.w_stride));
  TESSERA_TRY_STATUS(layout(plan->x, type, call.inputs, call.rows, call.x_stride));
  TESSERA_TRY_STATUS(layout(plan->y, CUDA_R_32F, call.outputs, call.rows, call.y_stride));

  cublasLtMatmulPreference_t preference = nullptr;
  TESSERA_TRY_STATUS(check(api_->cublasLtMatmulPreferenceCreate(&preference), "prepare a choice"));
  const std::size_t most = kGemmWorkspace;
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  cublasStatus_t status = api_->cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = api_->cublasLtMatmulAlgoGetHeuristic(handle_, plan->product, plan->w, plan->x, plan->y, plan->y,
                                                  preference, 1, &best, &found);
  }
  (void)api_->cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) TESSERA_TRY_STATUS(check(status, "choose a kernel"));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || found == 0 || best.state != CUBLAS_STATUS_SUCCESS) {
    return detail::make_error(ErrorCode::unsupported, "cuBLAS has no kernel for a product of {} x {} x {}", call.rows,
                              call.outputs, call.inputs);
  }
  plan->algorithm = best.algo;
  return plans_.emplace(shape, std::move(plan)).first->second.get();
}

Status Gemm::run(const GemmCall& call) {
  TESSERA_TRY(const Plan* const plan, plan_of(call));
  const float one = 1.0f, zero = 0.0f;
  ++products_;
  return check(
      api_->cublasLtMatmul(handle_, plan->product, &one, call.w, plan->w, call.x, plan->x, &zero, call.y, plan->y,
                           call.y, plan->y, &plan->algorithm, workspace_, kGemmWorkspace, device_->stream()),
      "multiply");
}

}  // namespace tessera::cuda
