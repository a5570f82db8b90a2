// The example mpi_generate writes, on several processes of an MPI job, what one process writes.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cli/program.hpp"
#include "engine/models.hpp"
#include "sanitized.hpp"

namespace test_rank_mpi {

using namespace tessera;
using namespace tessera::test;
using namespace tessera::tests::cli;

namespace {

const std::string kMpi = TESSERA_BIN_DIR "/mpi_generate";

// Containers run tests as root, without ssh, and on fewer processors than processes.
const std::string kMpirun = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated timeout 120 mpirun --oversubscribe -n ";

bool lacks_mpi() {
  if (tests::kSanitized) {
    tests::skip("processes of an MPI job: MPI's own memory is not a sanitizer's");
    return true;
  }
  if (lacks(kMpi, "the example program \"mpi_generate\" (not built)")) return true;
  if (std::system((kMpirun + "2 true > /dev/null 2>&1 < /dev/null").c_str()) == 0) return false;
  tests::skip("mpirun (openmpi-bin), or it cannot start processes here");
  return true;
}

// Runs the program on `ranks` processes.
int run_mpi(int ranks, const std::string& arguments, const std::string& out, const std::string& err) {
  const int status = std::system((kMpirun + std::to_string(ranks) + " " + kMpi + " " + arguments + " > " + out + " 2> " + err + " < /dev/null").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("processes of an MPI job write what one process writes") {
  if (lacks_mpi()) return;
  const std::string model = TESSERA_SOURCE_DIR "/models/tessera-stories.gguf";
  const Engine engine = must(Engine::load(model));
  Session session = must(engine.session());
  must(session.append(must(engine.tokenizer().encode("Once upon a time"))));
  auto sampler = sampling::chain().greedy().build();
  std::string expected = "Once upon a time";
  for (const auto& piece : session.generate(sampler, {.max_tokens = 24})) expected += must(piece).text;
  const TemporaryFile out, err;
  for (const int ranks : {2, 3}) {
    const int status = run_mpi(ranks, model + " \"Once upon a time\" 24", out.path(), err.path());
    INFO(ranks << " processes; " << slurp(err.path()));
    CHECK(status == 0);
    CHECK(slurp(out.path()) == expected + "\n");
  }
}

TEST_CASE("an MPI job with a wrong model, or of one process, ends with a sentence") {
  if (lacks_mpi()) return;
  const TemporaryFile out, err;
  CHECK(run_mpi(2, "/nowhere.gguf \"Once\" 8", out.path(), err.path()) == 1);
  CHECK_THAT(slurp(err.path()), Catch::Contains("nowhere.gguf"));
  CHECK(run_mpi(1, "/nowhere.gguf \"Once\" 8", out.path(), err.path()) == 2);
  CHECK_THAT(slurp(err.path()), Catch::Contains("start several"));
}

}  // namespace test_rank_mpi
