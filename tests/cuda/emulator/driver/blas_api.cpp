// cuBLASLt: handles, descriptors, and the checks of a product before it is queued. matmul.cpp computes it.
#include <cublasLt.h>
#include <cuda.h>
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <type_traits>

#include "driver.hpp"
#include "matmul.hpp"

using namespace tessera::emulator;  // NOLINT: a file of C functions

namespace {

struct Handle : BlasObject {};

struct Product : BlasObject {
  bool transpose_a = false;
  bool transpose_b = false;
};

struct Layout : BlasObject {
  MatrixView view;
};

struct Preference : BlasObject {
  std::size_t max_workspace = 0;
};

constexpr std::size_t kWorkspace = 4096;  // what every algorithm asks for, if it may
constexpr std::uint64_t kAlgorithm = 0x7e55e8a;

template <class Body>
cublasStatus_t blas_call(const char* name, Needs needs, Body&& body) noexcept {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const CUresult result = call(name, needs, [&](Driver& driver) {
    status = body(driver);
    return CUDA_SUCCESS;
  });
  if (result == CUDA_SUCCESS) return status;
  if (result == CUDA_ERROR_INVALID_CONTEXT) return CUBLAS_STATUS_NOT_INITIALIZED;
  return result == CUDA_ERROR_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t wrong(Driver& driver, const char* name, const char* what) {
  (void)driver.mistake(CUDA_ERROR_INVALID_VALUE, fmt::format("{}: {}", name, what));
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <class Object, class Pointer>
Object* object_of(Driver& driver, Pointer handle) {
  const auto found = driver.blas.find(handle);
  return found == driver.blas.end() ? nullptr : dynamic_cast<Object*>(found->second.get());
}

template <class Object, class Pointer>
Object& make(Driver& driver, Pointer* handle) {
  auto object = std::make_unique<Object>();
  Object& made = *object;
  *handle = reinterpret_cast<Pointer>(object.get());
  driver.blas.emplace(*handle, std::move(object));
  return made;
}

template <class Object, class Pointer>
cublasStatus_t destroy(const char* name, Pointer handle) noexcept {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const CUresult result = release(name, Needs::nothing, [&](Driver& driver) {
    if (object_of<Object>(driver, handle) == nullptr) {
      status = wrong(driver, name, "it is none");
    } else {
      driver.blas.erase(handle);
    }
    return CUDA_SUCCESS;
  });
  return result == CUDA_SUCCESS ? status : CUBLAS_STATUS_EXECUTION_FAILED;
}

// The value of an attribute, whose size must be T's.
template <class T>
bool read(const void* from, std::size_t bytes, T& value) {
  if (from == nullptr || bytes != sizeof(T)) return false;
  std::memcpy(&value, from, sizeof(T));
  return true;
}

// What a product of these is: shapes, types, and whether this library does them.
cublasStatus_t check_shapes(Driver& driver, const char* name, const Product& product, const Layout& a, const Layout& b,
                            const Layout& c, const Layout& d) {
  const auto input = [](cudaDataType type) { return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF; };
  if (!input(a.view.type) || a.view.type != b.view.type || c.view.type != CUDA_R_32F || d.view.type != CUDA_R_32F) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const MatrixView op_a = product.transpose_a ? a.view.transposed() : a.view;
  const MatrixView op_b = product.transpose_b ? b.view.transposed() : b.view;
  if (op_a.rows != d.view.rows || op_b.columns != d.view.columns || op_a.columns != op_b.rows ||
      c.view.rows != d.view.rows || c.view.columns != d.view.columns) {
    return wrong(driver, name, "shapes that do not fit");
  }
  for (const Layout* layout : {&a, &b, &c, &d}) {
    if (!layout->view.is_valid()) return wrong(driver, name, "a leading dimension that is too small");
    if (layout->view.batches != d.view.batches) return wrong(driver, name, "batches of different counts");
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return blas_call("cublasLtCreate", Needs::context, [&](Driver& driver) {
    make<Handle>(driver, handle);
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy<Handle>("cublasLtDestroy", handle); }

std::size_t cublasLtGetVersion() { return 130000; }

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "an unknown status";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return blas_call("cublasLtMatmulDescCreate", Needs::nothing, [&](Driver& driver) {
    const bool f32 = compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC;
    if (!f32 || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;  // TF32 too: results are to be f32's
    make<Product>(driver, handle);
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  return destroy<Product>("cublasLtMatmulDescDestroy", handle);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  constexpr const char* kName = "cublasLtMatmulDescSetAttribute";
  return blas_call(kName, Needs::nothing, [&](Driver& driver) {
    Product* const product = object_of<Product>(driver, handle);
    std::int32_t number = 0;
    if (product == nullptr || !read(value, bytes, number)) return wrong(driver, kName, "no product, or a wrong size");
    switch (attribute) {
      case CUBLASLT_MATMUL_DESC_TRANSA:
      case CUBLASLT_MATMUL_DESC_TRANSB:
        if (number != CUBLAS_OP_N && number != CUBLAS_OP_T) return CUBLAS_STATUS_NOT_SUPPORTED;
        (attribute == CUBLASLT_MATMUL_DESC_TRANSA ? product->transpose_a : product->transpose_b) =
            number == CUBLAS_OP_T;
        return CUBLAS_STATUS_SUCCESS;
      case CUBLASLT_MATMUL_DESC_POINTER_MODE:
        return number == CUBLASLT_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
      case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return number == CUBLASLT_EPILOGUE_DEFAULT ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
      default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  });
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  return blas_call("cublasLtMatrixLayoutCreate", Needs::nothing, [&](Driver& driver) {
    if (rows == 0 || columns == 0 || leading <= 0)
      return wrong(driver, "cublasLtMatrixLayoutCreate", "an empty matrix");
    make<Layout>(driver, handle).view = {type, rows, columns, static_cast<std::uint64_t>(leading)};
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  return destroy<Layout>("cublasLtMatrixLayoutDestroy", handle);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  constexpr const char* kName = "cublasLtMatrixLayoutSetAttribute";
  return blas_call(kName, Needs::nothing, [&](Driver& driver) {
    Layout* const layout = object_of<Layout>(driver, handle);
    if (layout == nullptr) return wrong(driver, kName, "no layout");
    std::int32_t number = 0;
    std::int64_t wide = 0;
    switch (attribute) {
      case CUBLASLT_MATRIX_LAYOUT_ORDER:
        if (!read(value, bytes, number)) return wrong(driver, kName, "a wrong size");
        if (number != CUBLASLT_ORDER_COL && number != CUBLASLT_ORDER_ROW) return CUBLAS_STATUS_NOT_SUPPORTED;
        layout->view.row_major = number == CUBLASLT_ORDER_ROW;
        return CUBLAS_STATUS_SUCCESS;
      case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        if (!read(value, bytes, number) || number < 1) return wrong(driver, kName, "no batches, or a wrong size");
        layout->view.batches = static_cast<std::uint64_t>(number);
        return CUBLAS_STATUS_SUCCESS;
      case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        if (!read(value, bytes, wide) || wide < 0) return wrong(driver, kName, "a negative stride, or a wrong size");
        layout->view.batch_stride = static_cast<std::uint64_t>(wide);
        return CUBLAS_STATUS_SUCCESS;
      default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  });
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* handle) {
  return blas_call("cublasLtMatmulPreferenceCreate", Needs::nothing, [&](Driver& driver) {
    make<Preference>(driver, handle);
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  return destroy<Preference>("cublasLtMatmulPreferenceDestroy", handle);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  constexpr const char* kName = "cublasLtMatmulPreferenceSetAttribute";
  return blas_call(kName, Needs::nothing, [&](Driver& driver) {
    Preference* const preference = object_of<Preference>(driver, handle);
    if (preference == nullptr) return wrong(driver, kName, "no preference");
    if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return CUBLAS_STATUS_SUCCESS;  // hints
    return read(value, bytes, preference->max_workspace) ? CUBLAS_STATUS_SUCCESS : wrong(driver, kName, "a wrong size");
  });
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product_handle,
                                              cublasLtMatrixLayout_t a_handle, cublasLtMatrixLayout_t b_handle,
                                              cublasLtMatrixLayout_t c_handle, cublasLtMatrixLayout_t d_handle,
                                              cublasLtMatmulPreference_t preference_handle, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  constexpr const char* kName = "cublasLtMatmulAlgoGetHeuristic";
  return blas_call(kName, Needs::context, [&](Driver& driver) {
    const Product* const product = object_of<Product>(driver, product_handle);
    const Layout *const a = object_of<Layout>(driver, a_handle), *const b = object_of<Layout>(driver, b_handle),
                        *const c = object_of<Layout>(driver, c_handle), *const d = object_of<Layout>(driver, d_handle);
    const Preference* const preference = object_of<Preference>(driver, preference_handle);
    if (object_of<Handle>(driver, handle) == nullptr || product == nullptr || a == nullptr || b == nullptr ||
        c == nullptr || d == nullptr || preference == nullptr || wanted < 1) {
      return wrong(driver, kName, "a handle that is none");
    }
    *found = 0;
    const cublasStatus_t status = check_shapes(driver, kName, *product, *a, *b, *c, *d);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    results[0] = {};
    results[0].algo.data[0] = kAlgorithm;
    results[0].workspaceSize = preference->max_workspace < kWorkspace ? 0 : kWorkspace;
    results[0].algo.data[1] = results[0].workspaceSize;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    results[0].wavesCount = 1.0f;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product_handle, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_handle, const void* b,
                              cublasLtMatrixLayout_t b_handle, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_handle, void* d, cublasLtMatrixLayout_t d_handle,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream_handle) {
  constexpr const char* kName = "cublasLtMatmul";
  return blas_call(kName, Needs::context, [&](Driver& driver) {
    const Product* const product = object_of<Product>(driver, product_handle);
    const Layout *const la = object_of<Layout>(driver, a_handle), *const lb = object_of<Layout>(driver, b_handle),
                        *const lc = object_of<Layout>(driver, c_handle),
                        *const ld = object_of<Layout>(driver, d_handle);
    Stream* const stream = driver.stream(stream_handle);
    if (object_of<Handle>(driver, handle) == nullptr || product == nullptr || la == nullptr || lb == nullptr ||
        lc == nullptr || ld == nullptr || stream == nullptr || alpha == nullptr || beta == nullptr) {
      return wrong(driver, kName, "a handle that is none");
    }
    const cublasStatus_t status = check_shapes(driver, kName, *product, *la, *lb, *lc, *ld);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    Matmul work;
    std::memcpy(&work.alpha, alpha, sizeof(float));
    std::memcpy(&work.beta, beta, sizeof(float));
    const auto in_device = [&](const void* at, const Layout& layout) {
      return driver.device.holds(at, layout.view.extent_bytes()) &&
             reinterpret_cast<std::uintptr_t>(at) % layout.view.element_bytes() == 0;
    };
    if (!in_device(a, *la) || !in_device(b, *lb) || !in_device(d, *ld) || (work.beta != 0.0f && !in_device(c, *lc))) {
      return wrong(driver, kName, "a matrix that is not all in one piece of device memory");
    }
    if (algorithm != nullptr && algorithm->data[0] != kAlgorithm)
      return wrong(driver, kName, "no algorithm of this library's");
    if (algorithm != nullptr && algorithm->data[1] > workspace_bytes)
      return wrong(driver, kName, "too small a workspace");
    if (workspace_bytes > 0 &&
        (!driver.device.holds(workspace, workspace_bytes) || reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)) {
      return wrong(driver, kName, "a workspace that is not device memory at a multiple of 256");
    }
    work.a = product->transpose_a ? la->view.transposed() : la->view;
    work.b = product->transpose_b ? lb->view.transposed() : lb->view;
    work.c = lc->view;
    work.d = ld->view;
    const std::size_t scratch = algorithm != nullptr ? algorithm->data[1] : 0;
    driver.push(*stream, {[=, &driver] {
                            if (scratch > 0) std::memset(workspace, 0xa5, scratch);  // two streams must not share one
                            multiply(work, a, b, c, d);
                            ++driver.matmuls;
                            return CUDA_SUCCESS;
                          },
                          {},
                          {}});
    return CUBLAS_STATUS_SUCCESS;
  });
}
}
