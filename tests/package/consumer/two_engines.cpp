// Two engines in one process, used at the same time from two threads: each computes what it computes alone.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

namespace {

// The greedy continuation of one token, and the checksum of its keys and values; empty on an error.
std::vector<tessera::Token> continuation(const tessera::Engine& engine, std::uint64_t* checksum = nullptr) {
  auto session = engine.session();
  if (!session) return {};
  std::vector<tessera::Token> tokens = {1};
  while (tokens.size() < 12) {
    const tessera::Token last[] = {tokens.back()};
    const auto logits = session->append(last);
    if (!logits) return {};
    const auto row = (*logits)[0];
    tokens.push_back(static_cast<tessera::Token>(std::max_element(row.begin(), row.end()) - row.begin()));
  }
  if (checksum != nullptr) *checksum = session->kv().checksum(engine.spec().n_layers() - 1);
  return tokens;
}

std::optional<tessera::Engine> load(const char* path) {
  auto engine = tessera::Engine::load(path, {.threads = 2});
  if (engine) return *std::move(engine);
  std::fprintf(stderr, "%s\n", engine.error().text().c_str());
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::vector<tessera::Token> alone[2];
  for (int i = 0; i < 2; ++i) {
    const auto engine = load(argv[i + 1]);
    if (!engine) return 1;
    std::uint64_t checksum = 0;
    alone[i] = continuation(*engine, &checksum);
    std::printf("%016llx\n", static_cast<unsigned long long>(checksum));
  }

  auto first = load(argv[1]);
  const auto second = load(argv[2]);
  if (!first || !second) return 1;
  std::vector<tessera::Token> together[2];
  {
    std::jthread a([&] { together[0] = continuation(*first); });
    std::jthread b([&] { together[1] = continuation(*second); });
  }
  first.reset();  // the other one does not mind
  const bool same = !alone[0].empty() && !alone[1].empty() && alone[0] == together[0] && alone[1] == together[1];
  return same && continuation(*second) == alone[1] ? 0 : 1;
}
