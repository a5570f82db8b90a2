// tessera-bench on the emulated device: nothing measures the CPU for it, and percentages are of the limits it is given.
#include "cli/program.hpp"

#include <nlohmann/json.hpp>

namespace test_cuda_bench {

using namespace tessera::tests::cli;

namespace {

using Json = nlohmann::json;

const std::string kBench = TESSERA_BIN_DIR "/tessera-bench";
const std::string kDevice = "sm_90";  // in what the device says of itself

bool lacks_bench() { return lacks(kBench, "tessera-bench (not built)"); }

Outcome on_cuda(const Args& more) {
  Args args = {"--shape", "tiny", "-p", "20", "-n", "2", "--repeat", "1", "--backend", "cuda", "--cuda-driver",
               TESSERA_CUDA_EMULATOR, "--cuda-blas", TESSERA_CUDA_EMULATOR};
  args.insert(args.end(), more.begin(), more.end());
  Outcome outcome = run_program(kBench, args);
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  return outcome;
}

std::vector<Json> lines_of(const Outcome& outcome) {
  std::vector<Json> lines;
  std::istringstream stream(outcome.out);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("tessera-bench on a GPU: shares of the limits that it is given", "[cuda]") {
  if (lacks_bench()) return;
  const auto lines = lines_of(on_cuda({"--json", "--limits", "2000,500.5"}));
  REQUIRE(lines.size() == 2);
  for (const Json& line : lines) {
    INFO(line.dump());
    CHECK(line.at("backend") == "cuda");
    CHECK(line.at("isa").get<std::string>().find(kDevice) != std::string::npos);
    CHECK(line.at("machine") == line.at("isa"));
    CHECK(line.at("read_bandwidth_gb_per_s") == 2000);
    CHECK(line.at("matrix_peak_tflop_per_s") == 500.5);
    CHECK(line.at("pct_read_bandwidth").get<double>() == Approx(100 * line.at("gb_per_s").get<double>() / 2000));
    CHECK(line.at("pct_matrix_peak").get<double>() == Approx(100 * line.at("tflop_per_s").get<double>() / 500.5));
  }
}

TEST_CASE("tessera-bench on a GPU: no percentages of what nobody has measured", "[cuda]") {
  if (lacks_bench()) return;
  for (const Json& line : lines_of(on_cuda({"--json"}))) {
    INFO(line.dump());
    for (const char* unknown : {"read_bandwidth_gb_per_s", "matrix_peak_tflop_per_s", "pct_read_bandwidth", "pct_matrix_peak"}) {
      CHECK(line.at(unknown).is_null());
    }
    CHECK(line.at("gb_per_s").get<double>() > 0);
  }
  const Outcome table = on_cuda({});
  CHECK(table.out.find("unknown") != std::string::npos);
  CHECK(table.out.find("backend cuda") != std::string::npos);
  CHECK(table.out.find(kDevice) != std::string::npos);
  CHECK(table.out.find("inf") == std::string::npos);
  CHECK(table.out.find("medians") == std::string::npos);
}

TEST_CASE("tessera-bench on a GPU: a roofline of the limits that it is given", "[cuda]") {
  if (lacks_bench()) return;
  const TemporaryFile svg;
  on_cuda({"--limits", "2000,500", "--plot", svg.path()});
  const std::string picture = slurp(svg.path());
  CHECK(picture.find("bf16 500 TFLOP/s") != std::string::npos);
  CHECK(picture.find("memory 2000 GB/s") != std::string::npos);
}

}  // namespace test_cuda_bench
