// tessera-rank, a process of its own, killed and stopped at any moment: the engine's call returns an error in time, its process lives, and
// with a new rank everything goes on.
#include <chrono>
#include <random>
#include <thread>

#include <sys/socket.h>
#include <sys/un.h>

#include "cli/program.hpp"
#include "ranks/divided.hpp"

namespace test_rank_program {

using namespace tessera;
using namespace tessera::test;
namespace cli = tessera::tests::cli;

namespace {

const std::string kRank = TESSERA_BIN_DIR "/tessera-rank";

class RankProcess {
 public:
  explicit RankProcess(const std::string& model) : address_("unix:/tmp/tessera-rank-program-" + std::to_string(::getpid()) + "-" + std::to_string(next()++)) {
    std::vector<std::string> arguments{kRank, model, "--listen", address_, "-t", "1"};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    for (const int fd : {0, 1, 2}) posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    REQUIRE(posix_spawn(&pid_, kRank.c_str(), &files, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&files);
    for (int i = 0; i < 500 && !listens(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  RankProcess(RankProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)), address_(other.address_) {}
  RankProcess& operator=(RankProcess&&) = delete;
  ~RankProcess() {
    if (pid_ == -1) return;
    send(SIGCONT);
    end(SIGKILL);
    std::filesystem::remove(address_.substr(5));
  }
  void send(int signal) const { ::kill(pid_, signal); }
  // Ends the process and returns its status.
  int end(int signal) {
    if (pid_ == -1) return -1;
    send(signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  // Returns whether somebody listens at the address: the file is there a moment before. The rank ignores a connection that says nothing.
  [[nodiscard]] bool listens() const {
    ::sockaddr_un at{};
    at.sun_family = AF_UNIX;
    address_.copy(at.sun_path, sizeof at.sun_path - 1, 5);
    const int handle = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const bool connected = ::connect(handle, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0;
    ::close(handle);
    return connected;
  }
  static int& next() {
    static int n = 0;
    return n;
  }
  ::pid_t pid_ = -1;
  std::string address_;
};

EngineOptions options_for(const std::vector<RankProcess>& ranks) {
  EngineOptions options;
  for (const RankProcess& rank : ranks) options.rank_addresses.push_back(rank.address());
  options.threads = 1;
  options.rank_timeout_ms = 1500;
  return options;
}

}  // namespace

TEST_CASE("a rank that is killed or stopped at any moment gives an error in time and nothing else") {
  if (cli::lacks(kRank, "tessera-rank (not built)")) return;
  const std::string model = golden_dir() / "llama-gqa.gguf";
  const auto tokens = golden_tokens("llama-gqa");
  const Engine one = load_golden("llama-gqa");
  Session alone = must(one.session());
  const auto expected = all_logits(alone, tokens, tokens.size());
  std::mt19937 random(3);
  std::size_t failed = 0;
  for (int round = 0; round < 12; ++round) {
    const int signal = round % 4 == 3 ? SIGSTOP : SIGKILL;
    std::vector<RankProcess> ranks;
    for (int i = 0; i < 2; ++i) ranks.emplace_back(model);
    const std::size_t victim = random() % 2;
    const Engine engine = must(Engine::load(model, options_for(ranks)));
    const std::chrono::microseconds after(random() % 4000);
    std::thread killer([&, signal, victim] {
      std::this_thread::sleep_for(after);
      ranks[victim].send(signal);
    });
    const auto begin = std::chrono::steady_clock::now();
    std::optional<Error> error;
    std::size_t committed = 0;
    for (int i = 0; i < 2000 && !error; ++i) {
      Session session = must(engine.session({.kv = {.prefix = PrefixReuse::off}}));
      const auto logits = session.append(tokens, {.logits = LogitsOf::all});
      if (!logits) {
        error = logits.error();
        committed = session.tokens().size();
      } else if (!same_bits(logits->values, expected)) {
        FAIL("a wrong logit in round " << round);
      }
    }
    killer.join();
    INFO("round " << round << (signal == SIGSTOP ? ", stopped" : ", killed"));
    REQUIRE(error);
    INFO(error->text());
    CHECK(error->code() == ErrorCode::device_error);
    CHECK(error->text().find("rank") != std::string::npos);
    CHECK(committed == 0);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
    ++failed;
    Session session = must(engine.session());
    CHECK_FALSE(session.append(std::span(tokens).first(2)));  // the group is gone, the process is not
  }
  CHECK(failed == 12);
}

TEST_CASE("generate writes the same text with tessera-rank, and Ctrl-C ends the rank") {
  if (cli::lacks_program() || cli::lacks(kRank, "tessera-rank (not built)")) return;
  const std::string model = source_dir() / "models/tessera-stories.gguf";
  std::vector<RankProcess> ranks;
  ranks.emplace_back(model);
  const cli::Args plain{"-m", model, "-p", "Once upon a time", "-n", "40", "--temp", "0", "--numerics", "invariant"};
  cli::Args divided = plain;
  divided.insert(divided.end(), {"--rank-at", ranks[0].address(), "-t", "1"});
  const auto expected = cli::run(plain), got = cli::run(divided);
  CHECK(expected.status == 0);
  CHECK(got.status == 0);
  CHECK(got.out == expected.out);
  CHECK(got.out.size() > 40);
  const int status = ranks[0].end(SIGINT);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace test_rank_program
