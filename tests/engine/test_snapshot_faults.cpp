// Saving and restoring where things go wrong: no memory, no room on the disk, a sink or a source that fails, files that are
// nonsense. An error, nothing leaked, nothing left behind, and no more memory than the file warrants.
#include "counted_new.hpp"

#include <csignal>
#include <cstdlib>
#include <random>

#include <sys/resource.h>
#include <unistd.h>

#include "engine/snapshot_bytes.hpp"

namespace test_snapshot_faults {

using namespace tessera;
using namespace tessera::test;
using counted::Failure;
namespace fs = std::filesystem;

namespace {

// system_memory() behind the same counter as operator new.
class FaultyMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) noexcept override {
    void* base = counted::granted() ? system_memory().allocate(bytes) : nullptr;
    if (base != nullptr) add(bytes);
    return base;
  }
  void release(void* base, std::size_t bytes) noexcept override {
    live -= bytes;
    system_memory().release(base, bytes);
  }
  std::size_t granularity() const noexcept override { return system_memory().granularity(); }
  void* reserve(std::size_t bytes) noexcept override { return counted::granted() ? system_memory().reserve(bytes) : nullptr; }
  void unreserve(void* base, std::size_t bytes) noexcept override { system_memory().unreserve(base, bytes); }
  bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    if (!counted::granted() || !system_memory().commit(base, offset, bytes)) return false;
    add(bytes);
    return true;
  }
  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    live -= bytes;
    system_memory().decommit(base, offset, bytes);
  }
  std::size_t live = 0, taken = 0;  // bytes

 private:
  void add(std::size_t bytes) noexcept {
    live += bytes;
    taken += bytes;
  }
};

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("tessera-saving-" + std::to_string(::getpid()))) { fs::create_directories(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    fs::permissions(path, fs::perms::owner_all);
    fs::remove_all(path);
  }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), {}));
  }
  fs::path path;
};

struct Rig {
  explicit Rig(std::uint32_t context = 64)
      : engine(changed_model("llama-gqa", [&](GgufWriter& writer) { must(writer.set("llama.context_length", context)); },
                             {.threads = 1, .memory = &memory})),
        session(must(engine.session())) {
    const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
    must(session.append(std::span(tokens).first(9)));
    must(session.remove(2, 4));
    must(session.append(std::span(tokens).subspan(9, 1)));
  }
  FaultyMemory memory;
  Engine engine;
  Session session;
};

void check_error(const Status& status, ErrorCode code, std::string_view words) {
  REQUIRE(!status);
  INFO(status.error().text());
  CHECK(status.error().code() == code);
  CHECK(status.error().text().find(words) != std::string::npos);
}

// Runs call(), whose k-th allocation fails, for k = 0, 1, ... until none does; after_error() each time it fails. A few
// allocations can be done without (of the prefix index): then the call has succeeded.
template <class Call, class AfterError, class AfterSuccess>
void fail_every_allocation(Call call, AfterError after_error, AfterSuccess after_success) {
  for (const Failure mode : {Failure::once, Failure::from_then_on}) {
    for (std::int64_t k = 0, survived = 0;; ++k) {
      counted::Scope scope(k, mode);
      bool was_hit = false;
      {
        auto result = call();
        scope.stop();
        was_hit = counted::failed > 0;
        INFO("allocation " << k << (mode == Failure::once ? " alone" : " and all after"));
        if (result) {
          after_success(result);
          CHECK(++survived <= 16);
        } else {
          if (result.error().code() != ErrorCode::out_of_memory) FAIL(result.error().text());
          after_error();
        }
      }
      if (counted::live != 0) FAIL("allocation " << k << ": " << counted::live << " bytes are leaked");
      if (!was_hit) break;
    }
  }
}

}  // namespace

TEST_CASE("saving: any allocation may fail, and the old file stays", "[snapshot][faults]") {
  Rig rig;
  const Folder folder;
  const auto path = folder.path / "s.tkv";
  Session old = must(rig.engine.session());
  must(old.save(path));
  const auto before = rig.memory.live;
  fail_every_allocation(
      [&] { return rig.session.save(path); },
      [&] {
        REQUIRE(rig.memory.live == before);
        REQUIRE(folder.entries() == 1);
        check_same(must(rig.engine.restore(path)), old);
      },
      [&](const Status&) {
        check_same(must(rig.engine.restore(path)), rig.session);
        must(old.save(path));
      });
  const Bytes expected = saved(rig.session);
  Bytes got;
  got.reserve(expected.size());
  fail_every_allocation(
      [&] {
        got.clear();
        return rig.session.save([&](std::span<const std::byte> piece) -> Status {
          got.insert(got.end(), piece.begin(), piece.end());
          return {};
        });
      },
      [] {}, [&](const Status&) { CHECK(got == expected); });
}

TEST_CASE("restoring: any allocation may fail, and nothing is left of it", "[snapshot][faults]") {
  Rig rig;
  must(rig.session.append(std::vector<Token>(40, 3)));  // whole pages
  Session whole = must(rig.engine.session());
  must(whole.append(std::vector<Token>(40, 5)));
  const Folder folder;
  const auto path = folder.path / "s.tkv";
  for (const Session* session : {&rig.session, &whole}) {
    const Bytes bytes = saved(*session);
    must(session->save(path));
    for (const Place& place : kPlaces) {
      const SessionOptions options = place_options(place);
      (void)must(rig.engine.restore(bytes, options));  // the pool has grown, and the index knows the pages
      rig.engine.trim();
      const auto before = rig.memory.live;
      const auto nothing_left = [&] {
        rig.engine.trim();
        REQUIRE(rig.memory.live == before);
      };
      const auto same = [&](const Result<Session>& restored) {
        counted::Pause pause;
        check_same(*restored, *session);
      };
      fail_every_allocation([&] { return rig.engine.restore(bytes, options); }, nothing_left, same);
      fail_every_allocation([&] { return rig.engine.restore(path, options); }, nothing_left, same);
    }
  }
}

TEST_CASE("what cannot be written says why, and leaves nothing", "[snapshot]") {
  Rig rig;
  const Folder folder;
  const auto& session = rig.session;
  check_error(session.save(folder.path / "absent" / "s"), ErrorCode::not_found, (folder.path / "absent" / "s").string());
  check_error(session.save(folder.path), ErrorCode::invalid_argument, folder.path.string() + ": exists and is not a regular");
  check_error(session.save("/dev/full"), ErrorCode::invalid_argument, "/dev/full");
  check_error(session.save(fs::path()), ErrorCode::invalid_argument, "empty");
  if (::geteuid() != 0) {
    fs::permissions(folder.path, fs::perms::owner_read | fs::perms::owner_exec);
    check_error(session.save(folder.path / "s"), ErrorCode::io, "Permission denied");
    fs::permissions(folder.path, fs::perms::owner_all);
  }
  CHECK(folder.entries() == 0);

  // A limit on a file's size stands for the full disk: write() gives EFBIG where it would give ENOSPC.
  const auto path = folder.path / "s.tkv";
  must(must(rig.engine.session()).save(path));
  struct ::rlimit old {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct ::rlimit little { 1000, old.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &little) == 0);
  const Status full = session.save(path);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  check_error(full, ErrorCode::io, path.string() + ": cannot write the file: File too large");
  CHECK(folder.entries() == 1);
  CHECK(must(rig.engine.restore(path)).tokens().empty());
}

TEST_CASE("a sink's error comes back as it is, an exception as callback_failed", "[snapshot]") {
  Rig rig(4096);
  must(rig.session.append(std::vector<Token>(4000, 4)));  // several chunks
  const std::size_t size = saved(rig.session).size();
  REQUIRE(size > 3 * 256 * 1024 / 2);
  for (const std::size_t after : {std::size_t{0}, std::size_t{1}}) {
    std::size_t calls = 0;
    const Status failed = rig.session.save([&](std::span<const std::byte>) -> Status {
      if (calls++ == after) return Error(ErrorCode::cancelled, "enough", "the sink");
      return {};
    });
    REQUIRE(!failed);
    CHECK(failed.error().code() == ErrorCode::cancelled);
    CHECK(failed.error().text() == "the sink: enough");
    CHECK(calls == after + 1);
    calls = 0;
    check_error(rig.session.save([&](std::span<const std::byte>) -> Status {
      if (calls++ == after) throw std::runtime_error("thrown by the sink");
      return {};
    }), ErrorCode::callback_failed, "thrown by the sink");
  }
  check_error(rig.session.save(ByteSink()), ErrorCode::invalid_argument, "sink");
  Session moved = must(rig.engine.session());
  const Session taken = std::move(moved);
  check_error(moved.save([](std::span<const std::byte>) { return Status(); }), ErrorCode::invalid_state, "moved");
  check_error(moved.save(fs::path("s.tkv")), ErrorCode::invalid_state, "moved");
}

TEST_CASE("a source's error comes back with its name, and bytes are read once", "[snapshot]") {
  class Source final : public ByteSource {
   public:
    explicit Source(const Bytes& bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint64_t size() const noexcept override { return bytes_.size(); }
    [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> out) noexcept override {
      if (reads++ == fails_at) return Error(ErrorCode::io, "the line is dead", "offset " + std::to_string(offset));
      if (offset != next || offset + out.size() > bytes_.size()) return Error(ErrorCode::internal, "out of order");
      next = offset + out.size();
      std::memcpy(out.data(), bytes_.data() + offset, out.size());
      return {};
    }
    [[nodiscard]] std::string name() const override {
      if (throws) throw std::runtime_error("no name");
      return "a far place";
    }
    std::size_t reads = 0, fails_at = 1000;
    std::uint64_t next = 0;
    bool throws = false;

   private:
    const Bytes& bytes_;
  };
  Rig rig(4096);
  must(rig.session.append(std::vector<Token>(4000, 4)));
  const Bytes bytes = saved(rig.session);
  const auto good = std::make_shared<Source>(bytes);
  check_same(must(rig.engine.restore(good)), rig.session);
  CHECK(good->next == bytes.size());
  CHECK(good->reads <= bytes.size() / (128 * 1024) + 1);
  for (std::size_t k = 0; k < good->reads; ++k) {
    const auto bad = std::make_shared<Source>(bytes);
    bad->fails_at = k;
    const auto failed = rig.engine.restore(bad);
    REQUIRE(!failed);
    CHECK(failed.error().code() == ErrorCode::io);
    CHECK(failed.error().text().starts_with("a far place: offset "));
  }
  const auto nameless = std::make_shared<Source>(bytes);
  nameless->throws = true;
  CHECK(rig.engine.restore(nameless).error().code() == ErrorCode::callback_failed);
}

TEST_CASE("neither saving nor restoring holds a second copy of the keys and values", "[snapshot]") {
  Rig rig(4096);
  must(rig.session.append(std::vector<Token>(4000, 4)));
  const auto kv = rig.session.kv().bytes();
  rig.memory.taken = 0;
  {
    counted::Scope scope;
    must(rig.session.save([](std::span<const std::byte>) { return Status(); }));
    CHECK(counted::peak + rig.memory.taken < 300'000);
  }
  const Bytes bytes = saved(rig.session);
  REQUIRE(kv > 600'000);
  rig.memory.taken = 0;
  counted::Scope scope;
  const Session restored = must(rig.engine.restore(bytes, {.kv = {.kind = KvKind::contiguous}}));
  scope.stop();
  CHECK(counted::peak + rig.memory.taken < restored.kv().bytes() + 400'000);
}

TEST_CASE("thousands of changed files, most with checksums made right again", "[snapshot]") {
  FaultyMemory memory;
  const Engine engine = load_golden("mistral", {.threads = 1, .memory = &memory});
  std::vector<Bytes> bases;
  {
    const auto tokens = read_tokens(golden_dir() / "mistral.tokens.txt");
    Session session = must(engine.session({.kv = {.page_tokens = 16}}));
    must(session.append(std::span(tokens).first(9)));
    must(session.remove(2, 4));
    bases.push_back(saved(session));
    must(session.clear());
    must(session.append(tokens));
    REQUIRE(session.kv().first() > 0);
    bases.push_back(saved(session));
    Sampler sampler = sampling::chain().greedy().build();
    must(session.generate(sampler, {.max_tokens = 2, .end_of_generation = EndOfGeneration::ignore}, {}));
    bases.push_back(saved(session));
  }
  const char* given = std::getenv("TESSERA_TEST_MUTATIONS");
  const int n = given != nullptr ? std::atoi(given) : 5'000;
  std::mt19937 random(20'261'120);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  const auto number = [&]() -> std::uint64_t {
    constexpr std::uint64_t kValues[] = {0, 1, 2, 3, 8, 15, 16, 17, 40, 64, 96, 255, 1u << 20, 0x7fffffff, 0xffffffff,
                                         ~std::uint64_t{0}, ~std::uint64_t{0} / 2, ~std::uint64_t{0} / 24};
    return kValues[below(std::size(kValues))] + (below(4) == 0 ? below(3) : 0);
  };
  std::size_t restored = 0, refusals = 0;
  for (int i = 0; i < n; ++i) {
    Bytes bytes = bases[below(bases.size())];
    const auto sections = sections_of(bytes);
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const SectionAt& at = sections[below(sections.size())];
      const std::size_t small = std::min<std::size_t>(at.length, 160);  // the numbers are in front
      switch (below(8)) {
        case 0: bytes[below(bytes.size())] ^= static_cast<std::byte>(1u << below(8)); break;
        case 1: put_number(bytes, at.begin + 8, number()); break;
        case 2: put_number(bytes, 4 * below(kFileHeader / 4), static_cast<std::uint32_t>(number())); break;
        case 3: bytes.resize(below(bytes.size() + 1)); break;
        case 4: std::memcpy(bytes.data() + at.begin, sections[below(sections.size())].type.data(), 4); break;
        default:
          if (small < 8) break;
          if (below(2) == 0) put_number(bytes, at.payload + 4 * below(small / 4), static_cast<std::uint32_t>(number()));
          else put_number(bytes, at.payload + 8 * below(small / 8), number());
      }
      if (bytes.size() < 2 * kFileHeader) break;
      if (sections_of(bytes).size() != sections.size()) break;
    }
    if (bytes.size() >= kFileHeader && below(8) != 0) {
      const Bytes magic(bases[0].begin(), bases[0].begin() + 16);
      if (below(16) != 0) std::ranges::copy(magic, bytes.begin());
      reseal(bytes);
    }
    const SessionOptions options = place_options(kPlaces[below(std::size(kPlaces))]);
    memory.taken = 0;
    counted::Scope scope;
    {
      auto session = engine.restore(bytes, options);
      const std::size_t taken = counted::peak + memory.taken;
      if (taken > 4 * bytes.size() + (1u << 20)) FAIL("file " << i << " takes " << taken << " bytes");
      counted::Pause pause;
      if (session) {
        ++restored;
        const auto tokens = session->tokens().size();
        const auto logits = session->append(std::vector<Token>{1, 2});
        if (!logits && logits.error().code() == ErrorCode::internal) FAIL(logits.error().text());
        if (logits) REQUIRE(session->tokens().size() == tokens + 2);
        (void)saved(*session);
      } else {
        ++refusals;
        const Error& error = session.error();
        if (error.message().empty() || error.place().empty() || error.code() == ErrorCode::internal) FAIL(error.text());
      }
    }
    scope.stop();
  }
  INFO(restored << " restored, " << refusals << " refused");
  if (given != nullptr) WARN(restored << " restored, " << refusals << " refused");
  CHECK(restored > static_cast<std::size_t>(n) / 100);
  CHECK(refusals > static_cast<std::size_t>(n) / 2);
}

}  // namespace test_snapshot_faults
