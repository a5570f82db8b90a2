// What a CUDA engine takes is known before, and what there is too little of, or not at all, is an error that says so.
#include <dlfcn.h>

#include <cuda.h>

#include "cuda/backend/rig.hpp"
#include "engine/made_model.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::uint32_t kContext = 700 / kSlower;
constexpr std::uint64_t kSlack = std::uint64_t{2} << 20;
constexpr MadeShape kShape{.d_model = 128, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 160, .vocab = 97, .context = 2048};

const MadeModel& model() {
  static const MadeModel made = make_model(kShape, DType::f16);
  return made;
}

Error refused(const EngineOptions& options) {
  const auto engine = Engine::load(model().file(), options);
  REQUIRE(!engine);
  INFO(engine.error().text());
  CHECK(engine.error().message().size() > 20);
  CHECK(tessera_emulator_live_count() == 0);
  CHECK(tessera_emulator_context_depth() == 0);
  return engine.error();
}

std::vector<KernelUse> explained(const EngineOptions& options) { return must(model().load(options).explain()); }

// The emulated driver, as a host uses one.
template <class Fn>
Fn driver(const char* name) {
  void* const library = dlopen(emulator_library().c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  void* const found = dlsym(library, name);
  REQUIRE(found != nullptr);
  return reinterpret_cast<Fn>(found);
}

// A host's own context and stream.
struct HostStream {
  HostStream() {
    REQUIRE(driver<decltype(&::cuInit)>("cuInit")(0) == CUDA_SUCCESS);
    REQUIRE(driver<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0) == CUDA_SUCCESS);
    push();
    REQUIRE(driver<decltype(&::cuStreamCreateWithPriority)>("cuStreamCreateWithPriority")(&stream, 0, 0) == CUDA_SUCCESS);
    pop();
  }
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  ~HostStream() {
    if (stream != nullptr) destroy();
    (void)driver<decltype(&::cuDevicePrimaryCtxRelease_v2)>("cuDevicePrimaryCtxRelease_v2")(0);
  }
  void push() const { REQUIRE(driver<decltype(&::cuCtxPushCurrent_v2)>("cuCtxPushCurrent_v2")(context) == CUDA_SUCCESS); }
  void pop() const {
    CUcontext left = nullptr;
    REQUIRE(driver<decltype(&::cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2")(&left) == CUDA_SUCCESS);
  }
  void destroy() {
    push();
    CHECK(driver<decltype(&::cuStreamDestroy_v2)>("cuStreamDestroy_v2")(stream) == CUDA_SUCCESS);
    pop();
    stream = nullptr;
  }
  CUcontext context = nullptr;
  CUstream stream = nullptr;
};

}  // namespace

TEST_CASE("planning needs neither a driver nor a device", "[cuda][plan]") {
  EngineOptions options;
  options.backend = BackendKind::cuda;
  options.cuda.driver_library = "/nowhere/libcuda.so";
  const Plan plan = must(Engine::plan(model().file(), options));
  CHECK(plan.device_peak == plan.weights + plan.workspace + plan.kv_limit);
  CHECK(plan.weights > 0);
  CHECK(plan.kv > 0);
  CHECK(plan.peak > 0);
  CHECK(plan.peak < plan.device_peak);
  options.numerics = Numerics::invariant;  // no workspace for cuBLAS
  CHECK(must(Engine::plan(model().file(), options)).workspace + (std::uint64_t{32} << 20) <= plan.workspace);
  CHECK(must(Engine::plan(model().file(), {})).device_peak == 0);
}

TEST_CASE("the device's memory is the plan's", "[cuda][plan]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  for (const Numerics numerics : {Numerics::automatic, Numerics::invariant}) {
    for (const KvOptions& kv : {KvOptions{.dtype = DType::f16}, KvOptions{.dtype = DType::int8, .page_tokens = 64},
                                KvOptions{.dtype = DType::f32, .kind = KvKind::contiguous}}) {
      for (const std::uint32_t step_rows : {64u, 512u}) {
        const EngineOptions options = on_cuda({.kv = kv, .context = kContext, .numerics = numerics, .step_rows = step_rows});
        const Plan plan = must(Engine::plan(model().file(), options));
        INFO("planned " << plan.device_peak << ": weights " << plan.weights << ", KV " << plan.kv << ", workspace " << plan.workspace);
        const Engine engine = model().load(options);
        CHECK(engine.plan().device_peak == plan.device_peak);
        const std::uint64_t loaded = tessera_emulator_live().device_bytes;
        CHECK(loaded == plan.weights + plan.workspace);
        Session session = must(engine.session());
        must(session.append(made_tokens(kContext - 10, kShape.vocab, 1)));
        Sampler sampler = sampling::chain().temperature(0.8f).top_k(20).build();
        must(session.generate(sampler, {.max_tokens = 10, .end_of_generation = EndOfGeneration::ignore}, {}));
        const std::uint64_t full = tessera_emulator_live().device_bytes;
        INFO("used " << full);
        CHECK(full <= plan.device_peak + plan.device_peak / 100 + kSlack);
        CHECK(full + plan.device_peak / 100 + kSlack >= plan.device_peak);
      }
    }
  }
  CHECK(tessera_emulator_live_count() == 0);
}

TEST_CASE("over a budget: refused before anything is taken", "[cuda][plan]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  EngineOptions options = on_cuda();
  const Plan plan = must(Engine::plan(model().file(), options));
  options.cuda.memory_budget = plan.device_peak - 1;
  CHECK(refused(options).code() == ErrorCode::over_budget);
  CHECK(refused(options).message().find("GPU") != std::string::npos);
  options.cuda.memory_budget = plan.device_peak;
  options.memory_budget = plan.peak - 1;
  CHECK(refused(options).code() == ErrorCode::over_budget);
  CHECK(tessera_emulator_calls() == 0);
  options.memory_budget = plan.peak;
  (void)model().load(options);
}

TEST_CASE("a device that is too small, too old, another one or not there", "[cuda][plan]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  EngineOptions options = on_cuda();
  const Plan plan = must(Engine::plan(model().file(), options));
  for (const std::uint64_t bytes : {std::uint64_t{1}, plan.weights - 1, plan.weights + 1, plan.weights + plan.workspace - 1}) {
    tessera_emulator_set_total_memory(bytes);
    CHECK(refused(options).code() == ErrorCode::out_of_memory);
  }
  {  // room for the engine, and for a part of its KV pages
    tessera_emulator_set_total_memory(plan.weights + plan.workspace);
    const Engine engine = model().load(options);
    Session session = must(engine.session());
    const auto full = session.append(std::vector<Token>{1, 2});
    REQUIRE(!full);
    CHECK(full.error().code() == ErrorCode::out_of_memory);
    CHECK(must(engine.session()).tokens().empty());
    const auto contiguous = engine.session({.kv = {.kind = KvKind::contiguous}});
    REQUIRE(!contiguous);
    CHECK(contiguous.error().code() == ErrorCode::out_of_memory);
    tessera_emulator_set_total_memory(std::size_t{1} << 30);
    must(session.append(std::vector<Token>{1, 2}));
  }
  CHECK(tessera_emulator_live_count() == 0);

  tessera_emulator_set_compute_capability(7, 5);
  CHECK(refused(options).code() == ErrorCode::unsupported);
  CHECK(refused(options).message().find("7.5") != std::string::npos);
  tessera_emulator_reset();
  for (const std::int32_t ordinal : {-1, 1, 1000}) {
    options.cuda.device = ordinal;
    CHECK(refused(options).code() == ErrorCode::invalid_argument);
  }
  options.cuda.device = 0;
  tessera_emulator_set_device_count(0);
  CHECK(refused(options).code() == ErrorCode::unsupported);
  tessera_emulator_reset();
  CHECK(tessera_emulator_mistakes() == 0);
}

TEST_CASE("libraries that are missing", "[cuda][plan]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  EngineOptions options = on_cuda();
  options.cuda.driver_library = "/nowhere/libcuda.so.1";
  CHECK(refused(options).code() == ErrorCode::not_found);
  CHECK(refused(options).message().find("driver") != std::string::npos);
  options.cuda.driver_library = "libm.so.6";  // something else
  CHECK(refused(options).code() == ErrorCode::unsupported);

  // Without cuBLAS all products are our own.
  options = on_cuda();
  options.fallback = Fallback::refuse;
  (void)model().load(options);
  for (const char* library : {"/nowhere/libcublasLt.so", "libm.so.6"}) {
    options = on_cuda();
    options.cuda.blas_library = library;
    bool said = false;
    for (const KernelUse& use : explained(options)) said = said || (use.kind == Operation::linear && !use.fallback.empty());
    CHECK(said);
    const std::uint64_t products = tessera_emulator_matmuls();
    const Engine own = model().load(options);
    const Engine invariant = model().load(on_cuda({.numerics = Numerics::invariant}));
    Session a = must(own.session()), b = must(invariant.session());
    must(a.append(made_tokens(40, kShape.vocab, 2)));
    must(b.append(made_tokens(40, kShape.vocab, 2)));
    CHECK(same_bits(a.logits(), b.logits()));
    CHECK(tessera_emulator_matmuls() == products);
    options.fallback = Fallback::refuse;
    const auto strict = Engine::load(model().file(), options);
    REQUIRE(!strict);
    CHECK(strict.error().code() == ErrorCode::unsupported);
    options.numerics = Numerics::invariant;  // needs none
    (void)model().load(options);
  }
  CHECK(tessera_emulator_live_count() == 0);
}

TEST_CASE("numerics that CUDA does not have are refused, when planning too", "[cuda][plan]") {
  tessera_emulator_reset();
  for (const Numerics numerics : {Numerics::reference, Numerics::bf16}) {
    const EngineOptions options = on_cuda({.numerics = numerics});
    const Error error = refused(options);
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK(error.message().find(std::string(to_string(numerics))) != std::string::npos);
    CHECK(Engine::plan(model().file(), options).error().code() == ErrorCode::unsupported);
  }
  for (const KernelUse& use : explained(on_cuda({.numerics = Numerics::fastest}))) CHECK(use.fallback.empty());
}

TEST_CASE("a host's stream is used and left alone", "[cuda][plan]") {
  if (on_real_device()) return;
  tessera_emulator_reset();
  {
    HostStream host;
    EngineOptions options = on_cuda();
    options.cuda.stream = host.stream;
    const Engine own = model().load(on_cuda());
    const std::size_t streams = tessera_emulator_live().streams;
    {
      const Engine engine = model().load(options);
      CHECK(tessera_emulator_live().streams == streams + 1);  // the one for KV pages
      host.push();  // steps leave the host's current context where it is
      Session a = must(own.session()), b = must(engine.session());
      must(a.append(made_tokens(40, kShape.vocab, 2)));
      must(b.append(made_tokens(40, kShape.vocab, 2)));
      CHECK(same_bits(a.logits(), b.logits()));
      CHECK(tessera_emulator_context_depth() == 1);
      host.pop();
    }
    CHECK(tessera_emulator_live().streams == streams);
    host.destroy();
    const std::uint64_t mistakes = tessera_emulator_mistakes();
    const auto gone = Engine::load(model().file(), options);  // of a stream that is no more
    REQUIRE(!gone);
    CHECK(gone.error().code() == ErrorCode::device_error);
    CHECK(tessera_emulator_mistakes() == mistakes + 1);
  }
  CHECK(tessera_emulator_live_count() == 0);
}

TEST_CASE("inputs of products that a folder would round are refused by name, before a device is looked for", "[cuda][plan]") {
  const auto folder = golden_dir() / "activations" / "w8a8-token";
  EngineOptions options = on_cuda({.tokenizer = TokenizerUse::none, .activations = Activations::as_the_model_says});
  const auto refused = Engine::load(folder, options);
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::unsupported);
  CHECK_THAT(refused.error().text(), Catch::Contains("backend cuda does not round inputs as the model says"));
  options.activations = Activations::automatic;
  CHECK(Engine::load(folder, options));
}
