// A decode step allocates nothing, neither from the heap nor from the host's Memory: counted over every thread, in our
// own operator new. The exceptions: a step that begins a page takes it, and one that fills a page which others may share
// enters it into the prefix index.
#include "counted_new.hpp"
#include "engine/models.hpp"

namespace test_decode_allocations {

using namespace tessera;
using namespace tessera::test;

namespace {

// Counts what the engine asks of its host.
class CountedMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) noexcept override {
    (void)counted::granted();
    return system_memory().allocate(bytes);
  }
  void release(void* base, std::size_t bytes) noexcept override { system_memory().release(base, bytes); }
  std::size_t granularity() const noexcept override { return system_memory().granularity(); }
  void* reserve(std::size_t bytes) noexcept override {
    (void)counted::granted();
    return system_memory().reserve(bytes);
  }
  bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    (void)counted::granted();
    return system_memory().commit(base, offset, bytes);
  }
  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    system_memory().decommit(base, offset, bytes);
  }
  void unreserve(void* base, std::size_t bytes) noexcept override { system_memory().unreserve(base, bytes); }
};

constexpr std::uint32_t kPageTokens = 16;
constexpr std::size_t kSteps = 55;

// The list of pages to take; the session's two tables, and the step's lists of page numbers and of addresses, when they double; and where
// the pool is empty a slab of pages and its four tables.
constexpr std::int64_t kForPage = 10;
// A root, a node and their tables.
constexpr std::int64_t kForIndex = 8;

struct StepCount {
  std::int64_t allocations;
  bool begins_page, fills_page;  // of the KV cache
};

// Decode steps, each counted by itself.
template <class Step>
std::vector<StepCount> count_steps(Session& session, Step step) {
  std::vector<StepCount> counts;
  for (std::size_t i = 0; i < kSteps; ++i) {
    const std::size_t position = session.position();
    counted::Scope scope;
    const bool good = step();
    scope.stop();
    REQUIRE(good);
    REQUIRE(session.position() == position + 1);
    counts.push_back({counted::count, position % kPageTokens == 0, session.position() % kPageTokens == 0});
  }
  return counts;
}

void check(const std::vector<StepCount>& counts, const SessionOptions& options) {
  const bool shared = options.kv.prefix == PrefixReuse::on;
  std::size_t pages = 0;
  for (std::size_t i = 4; i < counts.size(); ++i) {  // the first ones make working lists
    INFO("step " << i);
    if (counts[i].begins_page) {
      ++pages;
      CHECK(counts[i].allocations <= kForPage);
    } else if (counts[i].fills_page && shared) {
      CHECK(counts[i].allocations <= kForIndex);
    } else {
      CHECK(counts[i].allocations == 0);
    }
  }
  CHECK(pages >= kSteps / kPageTokens - 1);
}

}  // namespace

TEST_CASE("a decode step allocates nothing", "[memory]") {
  CountedMemory memory;
  for (const std::string& model : {std::string("llama-gqa"), std::string("qwen3"), std::string("gpt2"), std::string("falcon-7b"),
                                   std::string("qwen2moe"), std::string("gpt-oss")}) {
    for (const KvKind kind : {KvKind::contiguous, KvKind::paged}) {
      for (const PrefixReuse prefix : {PrefixReuse::off, PrefixReuse::on}) {
        if (kind == KvKind::contiguous && prefix == PrefixReuse::on) continue;
        DYNAMIC_SECTION(model << (kind == KvKind::paged ? ", paged" : ", contiguous")
                              << (prefix == PrefixReuse::on ? ", pages shared" : "")) {
          const Engine engine = load_golden(model, {.threads = 2, .memory = &memory});
          const std::vector<Token> prompt = {1, 2, 3, 4, 5};
          const SessionOptions options{.kv = {.kind = kind, .page_tokens = kPageTokens, .prefix = prefix}};
          {
            INFO("append() and a sampler");
            Session session = must(engine.session(options));
            (void)must(session.append(prompt));
            Sampler sampler = sampling::chain().temperature(0.9f).top_k(20).top_p(0.95f).seed(1).build();
            check(count_steps(session, [&] {
                    const auto token = sampler.sample(session.logits(), session.tokens(), session.position());
                    return token && session.append({&*token, 1}).has_value();
                  }), options);
          }
          {
            INFO("generate()");
            Session session = must(engine.session(options));
            (void)must(session.append(prompt));
            Sampler sampler = sampling::chain().temperature(0.9f).top_k(20).top_p(0.95f).seed(1).build();
            Generation generation = session.generate(
                sampler, {.max_tokens = kSteps + 2, .end_of_generation = EndOfGeneration::ignore});
            (void)generation.next();  // draws from the prompt's logits, and computes nothing
            check(count_steps(session, [&] {
                    const auto piece = generation.next();
                    return piece && piece->has_value();
                  }), options);
          }
        }
      }
    }
  }
}

}  // namespace test_decode_allocations
