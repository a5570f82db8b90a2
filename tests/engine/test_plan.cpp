// Contract 3: memory is known before it is taken. The plan's parts equal what the host's Memory is asked for, byte by
// byte, and the process's anonymous memory peaks within 1 % + 2 MB of the plan.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>

#include <tessera/extend/files/gguf_writer.hpp>

#include "engine/head_models.hpp"
#include "engine/mtp_models.hpp"
#include "formats/formats.hpp"
#include "kv/held_types.hpp"
#include "sanitized.hpp"

namespace test_plan {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::uint64_t kSlack = std::uint64_t{2} << 20;

// Of this process, in bytes.
std::uint64_t anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
  }
  return 0;
}

// Notes what is asked for; granules so small that nothing is rounded up.
class CountingMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) noexcept override {
    if (n_allocated < allocated.size()) allocated[n_allocated++] = bytes;
    return system_memory().allocate(bytes);
  }
  void release(void* base, std::size_t bytes) noexcept override {
    if (n_released < released.size()) released[n_released++] = bytes;
    system_memory().release(base, bytes);
  }
  void* reserve(std::size_t bytes) noexcept override { return system_memory().allocate(bytes); }
  void unreserve(void* base, std::size_t bytes) noexcept override { system_memory().release(base, bytes); }
  bool commit(void*, std::size_t, std::size_t bytes) noexcept override {
    committed += bytes;
    most_committed = std::max(most_committed, committed);
    return true;
  }
  void decommit(void*, std::size_t, std::size_t bytes) noexcept override { committed -= bytes; }

  std::array<std::size_t, 64> allocated{}, released{};
  std::size_t n_allocated = 0, n_released = 0;
  std::uint64_t committed = 0, most_committed = 0;
};

// Takes the highest level of anonymous memory, looked at whenever memory is about to go back.
class SampledMemory final : public Memory {
 public:
  void sample() noexcept { peak = std::max(peak, anonymous_memory()); }
  void* allocate(std::size_t bytes) noexcept override { return below_.allocate(bytes); }
  void release(void* base, std::size_t bytes) noexcept override {
    sample();
    below_.release(base, bytes);
  }
  std::size_t granularity() const noexcept override { return below_.granularity(); }
  void* reserve(std::size_t bytes) noexcept override { return below_.reserve(bytes); }
  bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    return below_.commit(base, offset, bytes);
  }
  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    below_.decommit(base, offset, bytes);
  }
  void unreserve(void* base, std::size_t bytes) noexcept override { below_.unreserve(base, bytes); }
  std::uint64_t peak = 0;

 private:
  Memory& below_ = system_memory();
};

// A header, and as many zeros as its tensors have bytes.
class ZeroSource final : public ByteSource {
 public:
  ZeroSource(std::vector<std::byte> header, std::uint64_t size) : header_(std::move(header)), size_(size) {}
  std::uint64_t size() const noexcept override { return size_; }
  std::string name() const override { return "zeros"; }
  Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
    if (offset > size_ || out.size() > size_ - offset) return Error(ErrorCode::io, "past the end");
    if (offset + out.size() > header_.size()) reached_weights = true;
    std::fill(out.begin(), out.end(), std::byte{0});
    if (offset < header_.size()) {
      const std::size_t n = std::min(out.size(), header_.size() - static_cast<std::size_t>(offset));
      std::copy_n(header_.begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
    }
    return {};
  }
  bool reached_weights = false;

 private:
  std::vector<std::byte> header_;
  std::uint64_t size_;
};

// A Llama of 33 million weights, all zero, of `dtype`.
std::shared_ptr<ZeroSource> big_model(DType dtype, std::uint32_t vocab = 8192) {
  constexpr std::uint32_t kWidth = 512, kLayers = 8, kFfn = 1536, kHeads = 8, kKvHeads = 4;
  GgufWriter writer;
  must(writer.set_string("general.architecture", "llama"));
  const std::pair<const char*, std::uint32_t> counts[] = {
      {"llama.embedding_length", kWidth}, {"llama.block_count", kLayers},   {"llama.feed_forward_length", kFfn},
      {"llama.context_length", 1024},     {"llama.attention.head_count", kHeads},
      {"llama.attention.head_count_kv", kKvHeads}};
  for (const auto& [key, value] : counts) must(writer.set(key, value));
  must(writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5f));
  std::uint64_t data = 0;
  const auto add = [&](const std::string& name, DType type, std::vector<std::uint64_t> dims) {
    must(writer.add_tensor(name, type, dims));
    const auto block = formats::block_of(type).value();
    data += (dims[0] * (dims.size() > 1 ? dims[1] : 1) / block.values * block.bytes + 31) / 32 * 32;
  };
  add("token_embd.weight", dtype, {kWidth, vocab});
  for (std::uint32_t i = 0; i < kLayers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    add(at + "attn_norm.weight", DType::f32, {kWidth});
    add(at + "attn_q.weight", dtype, {kWidth, kWidth});
    add(at + "attn_k.weight", dtype, {kWidth, kWidth / kHeads * kKvHeads});
    add(at + "attn_v.weight", dtype, {kWidth, kWidth / kHeads * kKvHeads});
    add(at + "attn_output.weight", dtype, {kWidth, kWidth});
    add(at + "ffn_norm.weight", DType::f32, {kWidth});
    add(at + "ffn_gate.weight", dtype, {kWidth, kFfn});
    add(at + "ffn_up.weight", dtype, {kWidth, kFfn});
    add(at + "ffn_down.weight", dtype, {kFfn, kWidth});
  }
  add("output_norm.weight", DType::f32, {kWidth});
  add("output.weight", dtype, {kWidth, vocab});

  // What comes before the first tensor's data is the header.
  std::vector<std::byte> header;
  bool in_data = false;
  const auto sink = [&](std::span<const std::byte> bytes) -> Status {
    if (!in_data) header.insert(header.end(), bytes.begin(), bytes.end());
    return {};
  };
  const auto stop = [&](std::string_view, const ByteSink&) -> Status {
    in_data = true;
    return Error(ErrorCode::cancelled, "the header is all");
  };
  REQUIRE(!writer.write(sink, stop));
  const std::uint64_t size = header.size() + data;
  return std::make_shared<ZeroSource>(std::move(header), size);
}

// Runs fn() in a process of its own and gives what it returned, so that each measurement begins at a clean level.
template <class Fn>
std::int64_t in_child(Fn fn) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::int64_t value = fn();
    const bool told = ::write(ends[1], &value, sizeof value) == sizeof value;
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  std::int64_t value = -1;
  const bool heard = ::read(ends[0], &value, sizeof value) == sizeof value;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE((heard && status == 0));
  return value;
}

enum class Fill { all_layers, one_layer, and_draw };  // pages hold all layers either way

// Brings the session to its context.
Status fill(const Engine& engine, Session& session, Fill how) {
  const std::vector<Token> tokens(session.context(), 1);
  if (how == Fill::all_layers) {
    const auto logits = session.append(tokens);
    return logits ? Status() : Status(logits.error());
  }
  if (how == Fill::and_draw) {
    const auto logits = session.append(std::span(tokens).first(tokens.size() - 1));
    if (!logits) return logits.error();
    // Alive while the child is measured.
    static Sampler sampler = sampling::chain().top_k(40).temperature(0.8f).top_p(0.9f).build();
    const auto summary = session.generate(sampler, {.max_tokens = 2}, {});
    return summary ? Status() : Status(summary.error());
  }
  Batch batch;
  if (auto added = batch.add(session, tokens, Want::nothing); !added) return added;
  const auto outputs = engine.forward(batch, {.first_layer = 0, .last_layer = 1});
  return outputs ? Status() : Status(outputs.error());
}

// Bytes above the level before the load, at the most; -1 on an error.
template <class Open>
std::int64_t measured_peak(Open open, EngineOptions options, Fill how) {
  return in_child([&]() -> std::int64_t {
    ::malloc_trim(0);
    SampledMemory memory;
    const std::uint64_t before = anonymous_memory();
    {
      const Result<ModelFile> file = open();
      if (!file) return -1;
      options.memory = &memory;
      options.progress = [&](std::uint64_t, std::uint64_t) {
        memory.sample();
        return true;
      };
      const auto engine = Engine::load(*file, options);
      memory.sample();
      if (!engine) return -1;
      auto session = engine->session();
      if (!session || !fill(*engine, *session, how)) return -1;
      memory.sample();
    }
    return static_cast<std::int64_t>(memory.peak - before);
  });
}

// In one layout and page size.
void check_parts_of(const ModelFile& file, EngineOptions options, Fill how) {
  CountingMemory memory;
  options.memory = &memory;
  const Plan plan = must(Engine::plan(file, options));
  REQUIRE(memory.n_allocated == 0);  // planning takes nothing
  const Engine engine = must(Engine::load(file, options));
  REQUIRE(memory.n_allocated == 3);
  CHECK(memory.allocated[0] == plan.weights);
  CHECK(memory.allocated[1] <= plan.loading);
  REQUIRE(memory.n_released == 1);
  CHECK(memory.released[0] == memory.allocated[1]);
  CHECK(memory.allocated[2] == plan.workspace);
  Session session = must(engine.session());
  CHECK(memory.committed == 0);
  CHECK(engine.kv_figures().held_bytes == 0);
  must(fill(engine, session, how));
  // Of recurrent layers one append holds fewer states than may be: those that an earlier one has left come beside them.
  const std::uint64_t states = session.kv().layout().state_bytes() * (kDefaultCheckpoints + 1 + kMostOffered);
  const std::uint64_t held = memory.most_committed + engine.kv_figures().held_bytes;
  CHECK(held <= plan.kv);
  CHECK(plan.kv - held <= states);
  if (states == 0) CHECK(held == plan.kv);
  CHECK(plan.kv >= plan.kv_per_token * plan.context);
  CHECK(engine.plan().peak == plan.peak);
}

// The plan's parts against what is asked for.
void check_capabilities(const ModelFile& file, EngineOptions options, Fill how) {
  for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
    for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
      // Of large models, which take seconds each, every layout in one page size.
      if (how == Fill::one_layer && page_tokens != (kind == KvKind::paged ? 64u : 32u)) continue;
      options.kv.kind = kind;
      options.kv.page_tokens = page_tokens;
      check_parts_of(file, options, how);
    }
  }
}

template <class Open>
void check_peak(const std::string& name, Open open, const EngineOptions& options, Fill how) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // the process's memory is mostly the sanitizer's
#endif
  const Plan plan = must(Engine::plan(must(open()), options));
  const std::int64_t peak = measured_peak(open, options, how);
  REQUIRE(peak >= 0);
  INFO(name << ": plan " << plan.peak << " (weights " << plan.weights << ", KV " << plan.kv << ", workspace "
            << plan.workspace << ", host " << plan.host << ", loading " << plan.loading << "), measured " << peak);
  CHECK(static_cast<std::uint64_t>(peak) <= plan.peak + plan.peak / 100 + kSlack);
  CHECK(static_cast<std::uint64_t>(peak) + plan.peak / 100 + kSlack >= plan.peak);
  if (std::getenv("TESSERA_TEST_FIGURES") != nullptr) {
    WARN(name << ": plan " << plan.peak << ", measured " << peak << ", difference "
              << peak - static_cast<std::int64_t>(plan.peak));
  }
}

}  // namespace

TEST_CASE("the plan is what is taken, for every architecture", "[plan]") {
  for (const GoldenCase& golden : golden_cases()) {
    const auto open = [&] { return ModelFile::open(golden.file()); };
    for (const DType dtype : kKvTypes) {
      if (tests::kSanitized && dtype != DType::f32 && dtype != DType::int8) continue;
      if (has_scale(held_as(dtype, kv::KeyOrValue::key)) && !holds(load_golden(golden.name), dtype)) continue;
      INFO(golden.name << ", KV " << to_string(dtype));
      EngineOptions options;
      options.threads = 2;
      options.kv.dtype = dtype;
      check_capabilities(must(open()), options, Fill::all_layers);
      if (dtype != DType::f32) continue;
      check_peak(golden.name, open, options, Fill::all_layers);
    }
  }
}

TEST_CASE("the plan is what is taken, with an MTP head", "[plan]") {
  for (const std::string& name : mtp_models()) {
    const auto open = [&] { return ModelFile::open(mtp_file(name)); };
    const EngineOptions options{.mtp = MtpHeads::load, .threads = 2};
    INFO(name);
    check_capabilities(must(open()), options, Fill::all_layers);
    check_peak(name, open, options, Fill::all_layers);
  }
}

TEST_CASE("the plan is what is taken, with draft heads of another file", "[plan]") {
  for (const HeadCase& heads : head_cases()) {
    const auto open = [&] { return ModelFile::open(golden_dir() / (heads.model + ".gguf")); };
    INFO(heads.name());
    check_capabilities(must(open()), with_heads(heads), Fill::all_layers);
    check_peak(heads.name(), open, with_heads(heads), Fill::all_layers);
  }
}

TEST_CASE("the plan is what is taken, for stories260K", "[plan]") {
  if (!std::filesystem::exists(shared_dir() / "models")) {
    return tests::skip("stories260K: the shared models are not there");
  }
  for (const char* name : {"stories260K-f32.gguf", "stories260K-f16.gguf"}) {
    const auto open = [&] { return ModelFile::open(shared_dir() / "models" / name); };
    EngineOptions options;
    options.threads = 2;
    check_capabilities(must(open()), options, Fill::all_layers);
    check_peak(name, open, options, Fill::all_layers);
  }
}

TEST_CASE("the plan is what is taken, for larger models of every format", "[plan]") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q5_1, DType::q4_k,
                            DType::q6_k}) {
    for (const DType kv : {DType::f32, DType::f16}) {
      if (kv == DType::f32 && dtype != DType::f16) continue;
      for (const std::uint32_t context : {0u, 200u}) {
        const auto source = big_model(dtype);
        const auto open = [&] { return ModelFile::from_source(source); };
        EngineOptions options;
        options.threads = dtype == DType::q8_0 ? 8 : 2;
        options.kv.dtype = kv;
        options.context = context;
        const std::string name = std::string(to_string(dtype)) + ", KV " + std::string(to_string(kv)) + ", context " +
                                 std::to_string(context);
        INFO(name);
        check_capabilities(must(open()), options, Fill::one_layer);
        if (context == 0 || kv == DType::f16) check_peak(name, open, options, Fill::one_layer);
      }
    }
  }
}

TEST_CASE("the plan holds for a large vocabulary, with a token drawn", "[plan]") {
  const auto source = big_model(DType::q8_0, 150'000);
  const auto open = [&] { return ModelFile::from_source(source); };
  EngineOptions options;
  options.threads = 2;
  options.context = 300;
  check_peak("a vocabulary of 150,000", open, options, Fill::and_draw);
}

TEST_CASE("what is kept for reuse stays within the plan, session after session", "[plan]") {
  for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
    EngineOptions options;
    options.threads = 1;
    options.kv.page_tokens = page_tokens;
    const Engine engine = load_golden("llama-long", options);
    for (Token token = 1; token < 6; ++token) {
      Session session = must(engine.session());
      must(session.append(std::vector<Token>(session.context() - 1 - static_cast<std::size_t>(token) * 7, token)));
      CHECK(engine.kv_figures().held_bytes <= engine.plan().kv);
    }
    CHECK(engine.kv_figures().used_bytes == 0);
    CHECK(engine.kv_figures().cached_bytes > 0);
    CHECK(engine.kv_figures().held_bytes <= engine.plan().kv);
    engine.trim();
    CHECK(engine.kv_figures().held_bytes == 0);
  }
}

TEST_CASE("weights' memory comes while they are read: loading can be stopped, and fails when there is no more", "[plan]") {
  class Counted final : public Memory {
   public:
    void* allocate(std::size_t bytes) noexcept override { return system_memory().allocate(bytes); }
    void* claim(std::size_t bytes) noexcept override { return system_memory().claim(bytes); }
    void release(void* base, std::size_t bytes) noexcept override { system_memory().release(base, bytes); }
    bool populate(void* base, std::size_t size, std::size_t offset, std::size_t bytes) noexcept override {
      if ((populated += bytes) > most) return false;
      return system_memory().populate(base, size, offset, bytes);
    }
    std::atomic<std::size_t> populated = 0;
    std::size_t most = SIZE_MAX;
  };
  const auto source = big_model(DType::q8_0, 150'000);
  for (const std::uint32_t threads : {1u, 3u}) {
    Counted memory;
    EngineOptions options;
    options.threads = threads;
    options.context = 64;
    options.memory = &memory;
    const ModelFile file = must(ModelFile::from_source(source));
    const Plan plan = must(Engine::plan(file, options));
    const std::size_t at_once = std::size_t{threads} << 24;
    REQUIRE(plan.weights > at_once);
    CHECK(must(Engine::load(file, options)).plan().weights == plan.weights);
    CHECK(memory.populated == plan.weights);
    memory.populated = 0;
    options.progress = [](std::uint64_t done, std::uint64_t) { return done == 0; };
    CHECK(Engine::load(file, options).error().code() == ErrorCode::cancelled);
    CHECK(memory.populated <= at_once);
    memory.populated = 0;
    memory.most = plan.weights - 1;
    options.progress = {};
    const auto failed = Engine::load(file, options);
    REQUIRE(!failed);
    CHECK(failed.error().code() == ErrorCode::out_of_memory);
  }
}

TEST_CASE("a budget below the plan is an error before a weight is read", "[plan]") {
  const auto source = big_model(DType::q8_0);
  const ModelFile file = must(ModelFile::from_source(source));
  source->reached_weights = false;  // the parser reads a little ahead of the header
  EngineOptions options;
  options.threads = 2;
  options.context = 64;
  CountingMemory memory;
  options.memory = &memory;
  const Plan plan = must(Engine::plan(file, options));
  REQUIRE(!source->reached_weights);
  options.memory_budget = plan.peak - 1;
  const auto refused = Engine::load(file, options);
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::over_budget);
  CHECK(!source->reached_weights);
  CHECK(memory.n_allocated == 0);
  options.memory_budget = plan.peak;
  options.kv_budget = std::numeric_limits<std::uint64_t>::max();  // a sum that would wrap
  CHECK(must(Engine::plan(file, options)).peak == options.kv_budget);
  CHECK(Engine::load(file, options).error().code() == ErrorCode::over_budget);
  CHECK(!source->reached_weights);
  options.kv_budget = 0;
  CHECK(Engine::load(file, options).has_value());
  CHECK(source->reached_weights);
}

}  // namespace test_plan
