// Generates text with a model that is divided among the processes of an MPI job. Process 0 has the engine, the others compute for it.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <tessera/extend/ranks.hpp>
#include <tessera/tessera.hpp>

#include "mpi_transport.hpp"

namespace {

int fail(const std::string& why) {
  std::fprintf(stderr, "mpi_generate: %s\n", why.c_str());
  return 1;
}

int generate(const char* model, const char* prompt, std::uint32_t tokens, std::shared_ptr<tessera::RankTransport> transport) {
  tessera::EngineOptions options;
  options.rank_transport = std::move(transport);
  auto engine = tessera::Engine::load(model, options);
  if (!engine) return fail(engine.error().text());
  auto session = engine->session();
  if (!session) return fail(session.error().text());
  auto ids = engine->tokenizer().encode(prompt);
  if (!ids) return fail(ids.error().text());
  if (auto logits = session->append(*ids); !logits) return fail(logits.error().text());
  auto sampler = tessera::sampling::chain().greedy().build();
  std::fputs(prompt, stdout);
  for (const auto& piece : session->generate(sampler, {.max_tokens = tokens})) {
    if (!piece) return fail(piece.error().text());
    std::fputs(piece->text.c_str(), stdout);
    std::fflush(stdout);
  }
  std::fputc('\n', stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int status = 0;
  {
    const auto transport = std::make_shared<example::MpiTransport>();
    const bool is_first = transport->rank() == 0;
    const long tokens = argc == 4 ? std::strtol(argv[3], nullptr, 10) : 64;
    if (argc < 3 || argc > 4 || tokens < 1 || tokens > 1'000'000) {
      if (is_first) std::fputs("usage: mpirun -n RANKS mpi_generate MODEL PROMPT [TOKENS]\nAll processes read MODEL. TOKENS: how many it writes at most (1 to 1000000, default 64).\n", stderr);
      status = 2;
    } else if (provided < MPI_THREAD_SERIALIZED || transport->ranks() < 2) {
      if (is_first) fail(transport->ranks() < 2 ? "there is one process: start several, with mpirun -n 2" : "this MPI cannot be called by several threads");
      status = 2;
    } else if (is_first) {
      status = generate(argv[1], argv[2], static_cast<std::uint32_t>(tokens), transport);
    } else if (auto served = tessera::serve_rank(argv[1], {.transport = transport}); !served) {
      status = fail("rank " + std::to_string(transport->rank()) + ": " + served.error().text());
    }
  }
  MPI_Finalize();
  return status;
}
