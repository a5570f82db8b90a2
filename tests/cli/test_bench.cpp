// tessera-bench as its users run it, on a shape that takes no time. What it measures is not judged: figures must be
// there, and agree with each other.
#include "program.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <set>

#include <nlohmann/json.hpp>

#include <tessera/extend/formats/rows.hpp>
#include <tessera/tessera.hpp>

#include "../../bench/tessera-bench/measure/measurement.hpp"

namespace test_bench {

using namespace tessera::tests::cli;

namespace {

using Json = nlohmann::json;

const std::string kBench = TESSERA_BIN_DIR "/tessera-bench";

bool lacks_bench() { return lacks(kBench, "tessera-bench (not built)"); }

Outcome bench(Args args, const Args& more = {}) {
  args.insert(args.end(), more.begin(), more.end());
  return run_program(kBench, args);
}

// Two threads, where there are two processors: more than there are is said on stderr.
const char* two_threads() { return tessera::usable_threads() > 1 ? "2" : "1"; }

// With what makes a run short.
Outcome tiny(const Args& more, const char* repeat = "2") {
  return bench({"--shape", "tiny", "--repeat", repeat, "--threads", two_threads(), "--read-buffer", "4"}, more);
}

std::vector<Json> lines_of(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  std::vector<Json> lines;
  std::istringstream stream(outcome.out);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

void fails_with(int status, const Args& args, const std::string& about) {
  const Outcome got = bench(args);
  std::string line;
  for (const std::string& arg : args) line += " " + arg;
  INFO("tessera-bench" << line << "\n" << got.err);
  CHECK(got.status == status);
  CHECK(got.out.empty());
  CHECK(got.err.starts_with("tessera-bench: "));
  CHECK(got.err.find('\n') == got.err.size() - 1);
  CHECK(got.err.find(about) != std::string::npos);
}

// Every element is closed in order, attributes are quoted, and nothing stands after the root.
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  bool closed = false;
  for (std::size_t at = 0; at < xml.size();) {
    if (xml[at] != '<') {
      if (open.empty() && std::isspace(static_cast<unsigned char>(xml[at])) == 0) return false;
      ++at;
      continue;
    }
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos || closed) return false;
    std::string tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0 || tag.find('<') != std::string::npos) return false;
    const std::size_t first = tag.starts_with('/') ? 1 : 0;
    const std::string name = tag.substr(first, tag.find_first_of(" />", 1) - first);
    if (tag.ends_with('/')) continue;
    if (!tag.starts_with('/')) {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
      closed = open.empty();
    }
  }
  return closed;
}

}  // namespace

TEST_CASE("tessera-bench --help teaches") {
  if (lacks_bench()) return;
  const Outcome got = bench({"--help"});
  CHECK(got.status == 0);
  CHECK(got.err.empty());
  for (const char* word : {"--shape", "llama-1b", "llama-8b", "qwen-0.5b", "Q4_K_M", "--depth", "--json", "--plot",
                           "--isa", "--limits", "Examples:", "Exit status"}) {
    INFO(word);
    CHECK(got.out.find(word) != std::string::npos);
  }
}

TEST_CASE("--json is an object a line, with figures that agree") {
  if (lacks_bench()) return;
  const auto lines = lines_of(tiny({"--format", "Q4_0", "-p", "8,40", "-n", "3", "-b", "1,3", "--batch-depth", "5",
                                    "--depth", "20,9", "--json"}));
  REQUIRE(lines.size() == 7);
  const std::vector<std::string> tests = {"prefill", "prefill", "decode", "batch", "batch", "depth", "depth"};
  const std::vector<int> rows = {8, 40, 1, 1, 3, 1, 1}, batch = {1, 1, 1, 1, 3, 1, 1}, depth = {0, 0, 0, 5, 5, 9, 20};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Json& line = lines[i];
    INFO(line.dump());
    CHECK(line.at("test") == tests[i]);
    CHECK(line.at("rows") == rows[i]);
    CHECK(line.at("batch") == batch[i]);
    CHECK(line.at("depth") == depth[i]);
    CHECK(line.at("shape") == "tiny");
    CHECK(line.at("format") == "Q4_0");
    CHECK(line.at("backend") == "cpu");
    CHECK(line.at("threads") == (tessera::usable_threads() > 1 ? 2 : 1));
    CHECK_FALSE(line.at("isa").get<std::string>().empty());
    CHECK_FALSE(line.at("family").get<std::string>().empty());
    const double rate = line.at("tokens_per_s"), bytes = line.at("bytes_per_token"), gb = line.at("gb_per_s");
    const double tflop = line.at("tflop_per_s");
    CHECK(line.at("median") == rate);
    CHECK(line.at("min") <= rate);
    CHECK(line.at("max") >= rate);
    CHECK(line.at("min") > 0);
    CHECK(gb == Approx(rate * bytes / 1e9));
    CHECK(tflop == Approx(rate * line.at("flop_per_token").get<double>() / 1e12));
    CHECK(line.at("pct_read_bandwidth") > 0);
    CHECK(line.at("pct_matrix_peak") > 0);
  }
}

TEST_CASE("numbers of tokens can be told in k, of 1024") {
  if (lacks_bench()) return;
  const auto lines = lines_of(tiny({"-p", "1k,8", "-n", "1", "--depth", "1K", "--json"}, "1"));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].at("rows") == 1024);
  CHECK(lines[1].at("rows") == 8);
  CHECK(lines[3].at("depth") == 1024);
}

TEST_CASE("shares are medians over runs, each with its own limits") {
  using tessera::bench::Measurement;
  using tessera::bench::Run;
  Measurement m;
  m.bytes_per_token = 10;
  m.flop_per_token = 100;
  m.runs = {{30, {600, "slow", 6000}}};
  CHECK(m.median() == 30);
  CHECK(m.share_of_read() == 0.5);
  CHECK(m.share_of_matrix() == 0.5);
  m.runs.push_back({20, {800, "fast", 4000}});  // shares 0.25 and 0.5
  CHECK(m.median() == 25);
  CHECK(m.slowest() == 20);
  CHECK(m.fastest() == 30);
  CHECK(m.share_of_read() == 0.375);
  CHECK(m.read_limit() == 700);
  CHECK(m.read_kernel() == "fast");
  m.runs.push_back({60, {600, "slow", 8000}});  // 1 and 0.75
  CHECK(m.median() == 30);
  CHECK(m.share_of_read() == 0.5);
  CHECK(m.share_of_matrix() == 0.5);
  CHECK(m.matrix_limit() == 6000);
  for (Run& run : m.runs) run.limits = {};  // nobody knows
  CHECK(std::isinf(m.share_of_read()));
  CHECK(std::isinf(m.share_of_matrix()));
}

TEST_CASE("the shares of one run are those of its own limits") {
  if (lacks_bench()) return;
  const auto lines = lines_of(tiny({"-p", "8", "-n", "3", "--json"}, "1"));
  REQUIRE(lines.size() == 2);
  for (const Json& line : lines) {
    INFO(line.dump());
    const double gb = line.at("gb_per_s"), tflop = line.at("tflop_per_s");
    CHECK(line.at("pct_read_bandwidth").get<double>() ==
          Approx(100 * gb / line.at("read_bandwidth_gb_per_s").get<double>()));
    CHECK(line.at("pct_matrix_peak").get<double>() ==
          Approx(100 * tflop / line.at("matrix_peak_tflop_per_s").get<double>()));
  }
}

TEST_CASE("bytes and operations a token are those worked out by hand") {
  if (lacks_bench()) return;
  const auto lines = lines_of(tiny({"--format", "F32", "--kv-dtype", "f32", "-p", "2", "-n", "1", "-b", "4",
                                    "--batch-depth", "9", "--json"}));
  REQUIRE(lines.size() == 3);
  // 2 layers of d 256: Q and output 256 x 256, K and V 256 x 128, FFN 3 x 256 x 512; logits 256 x 512; norms besides.
  const double layers = 2 * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512), output = 256 * 512, norms = 5 * 256;
  const double kv = 2 * 2 * 2 * 64 * 4;               // bytes a token: K and V, 2 layers, 2 heads of 64
  const double attention = 2 * 2 * 4 * (64 + 64);     // operations a key: 2 layers, 4 heads
  const auto bytes = [&](std::size_t i) { return lines[i].at("bytes_per_token").get<double>(); };
  const auto flop = [&](std::size_t i) { return lines[i].at("flop_per_token").get<double>(); };
  const double weights = 4 * (layers + output + norms);
  CHECK(bytes(0) == Approx((weights + 2 * kv) / 2));
  CHECK(flop(0) == Approx((2 * 2 * layers + 2 * output + 3 * attention) / 2));
  CHECK(bytes(1) == Approx(weights + 2 * kv));
  CHECK(flop(1) == Approx(2 * (layers + output) + 2 * attention));
  CHECK(bytes(2) == Approx(weights / 4 + 10 * kv));
  CHECK(flop(2) == Approx(2 * (layers + output) + 10 * attention));
}

TEST_CASE("the table has a row for each result, and the limits") {
  if (lacks_bench()) return;
  const Outcome got = tiny({"-p", "16", "-n", "2"});
  CHECK(got.status == 0);
  CHECK(got.err.empty());
  for (const char* word : {"machine", "kernels", "limits", "\nprefill ", "\ndecode ", "tiny, Q8_0", "% read"}) {
    INFO(word);
    CHECK(got.out.find(word) != std::string::npos);
  }
}

TEST_CASE("--plot draws a well-formed picture with every result") {
  if (lacks_bench()) return;
  const TemporaryFile svg;
  const Outcome got = tiny({"-p", "16,32", "-n", "2", "-b", "2", "--depth", "8", "--plot", svg.path()});
  INFO(got.err);
  REQUIRE(got.status == 0);
  const std::string picture = slurp(svg.path());
  CHECK(picture.starts_with("<svg "));
  CHECK(is_well_formed(picture));
  CHECK_FALSE(is_well_formed(picture.substr(0, picture.size() - 8)));
  CHECK(picture.find("nan") == std::string::npos);
  CHECK(picture.find("inf") == std::string::npos);
  std::size_t dots = 0;
  for (std::size_t at = 0; (at = picture.find("class=\"dot\"", at)) != std::string::npos; ++at) ++dots;
  CHECK(dots == 5);
}

TEST_CASE("what is asked for wrongly is one line and status 2, what fails status 1") {
  if (lacks_bench()) return;
  fails_with(2, {}, "--shape");
  fails_with(2, {"--shape", "llama-2b"}, "llama-1b");
  fails_with(2, {"--shape", "tiny", "--format", "Q9_0"}, "Q4_K_M");
  fails_with(2, {"--shape", "tiny", "-m", kTiny}, "-m MODEL");
  fails_with(2, {"-m", kTiny, "--format", "F32"}, "--format");
  fails_with(2, {"-m", kTiny, "--write", "x.gguf"}, "--write");
  for (const char* counts : {"", "0", "-1", "1,", "1,,2", "a", "1.5", "99999999999", "k", "0k", "1kk", "-1k", "16385k"}) {
    fails_with(2, {"--shape", "tiny", "-p", counts}, "-p: ");
  }
  fails_with(2, {"--shape", "tiny", "-b", "1k"}, "-b: ");
  fails_with(2, {"--shape", "tiny", "--kv-dtype", "q8"}, "int8");
  fails_with(2, {"--shape", "tiny", "--isa", "mmx"}, "baseline");
  fails_with(2, {"--shape", "tiny", "--numerics", "exact"}, "fastest");
  fails_with(2, {"--shape", "tiny", "--repeat", "0"}, "--repeat");
  for (const char* limits : {"", "1", "1,", "1;2", "0,1", "1,0", "-1,1", "a,b", "1,2,3", "inf,1", "1,nan"}) {
    fails_with(2, {"--shape", "tiny", "--backend", "cuda", "--limits", limits}, "--limits: ");
  }
  fails_with(2, {"--shape", "tiny", "--limits", "3000,700"}, "--backend cuda");
  fails_with(2, {"--shape", "tiny", "--backend", "cuda", "--plot", "x.svg"}, "--limits");
  fails_with(2, {"--shape", "tiny", "--cuda-device", "-1"}, "--cuda-device: ");
  fails_with(2, {"--shape", "tiny", "--worker", "--plot", "x.svg"}, "--worker");
  fails_with(1, {"-m", "no-such-file.gguf"}, "no-such-file.gguf");
  fails_with(1, {"--shape", "tiny", "--plot", "/no/such/folder/x.svg"}, "/no/such/folder");
  fails_with(1, {"--shape", "tiny", "--write", "/no/such/folder/x.gguf"}, "/no/such/folder");
  fails_with(1, {"-m", kTiny, "-p", "1000"}, "context");
}

TEST_CASE("a file is measured as it is, and results depend on the choice of kernels in name") {
  if (lacks_bench()) return;
  const auto lines = lines_of(bench({"-m", kTiny, "-n", "2", "--read-buffer", "4", "--json", "--isa",
                                     "baseline", "--numerics", "reference", "--kv-layout", "contiguous"}));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("format") == "F32");
  CHECK(lines[0].at("isa") == "baseline");
  CHECK(lines[0].at("numerics") == "reference");
  CHECK(lines[0].at("kv_layout") == "contiguous");
}

TEST_CASE("--write writes a model of finite values, in every format, that loads and generates") {
  if (lacks_bench()) return;
  for (const char* format : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K",
                             "q4_k_m"}) {
    INFO(format);
    const TemporaryFile path;
    const Outcome got = bench({"--shape", "tiny", "--format", format, "--write", path.path()});
    INFO(got.err);
    REQUIRE(got.status == 0);
    auto file = tessera::ModelFile::open(path.path());
    REQUIRE(file);
    for (const tessera::GgufTensor& tensor : file->tensors()) {
      INFO(tensor.name);
      std::vector<std::byte> bytes(tensor.bytes);
      REQUIRE(file->read(tensor, 0, bytes));
      std::vector<float> values(tensor.dims[0] * tensor.dims[1]);
      REQUIRE(tessera::formats::decode_row(tensor.dtype, bytes, values));
      double squares = 0;
      bool finite = true;
      for (const float v : values) finite = finite && std::isfinite(v), squares += double{v} * double{v};
      CHECK(finite);
      const double expected = tensor.n_dims > 1 ? 0.02 : 1;
      CHECK(std::sqrt(squares / static_cast<double>(values.size())) == Approx(expected).epsilon(0.1));
    }
    auto engine = tessera::Engine::load(*file, {.threads = 1});
    REQUIRE(engine);
    auto session = engine->session();
    REQUIRE(session);
    const auto tokens = engine->tokenizer().encode("hello");
    REQUIRE(tokens);
    const auto logits = session->append(*tokens);
    REQUIRE(logits);
    for (const float v : logits->values) REQUIRE(std::isfinite(v));
  }
}

TEST_CASE("Ctrl-C ends with what was measured so far") {
  if (lacks_bench()) return;
  const TemporaryFile svg;
  const File in = scratch(), out = scratch(), err = scratch();
  const pid_t pid = start(kBench,
                          {"--shape", "tiny", "--read-buffer", "4", "-p", "8", "-n", "1000000", "--json", "--plot",
                           svg.path()},
                          fileno(in.get()), fileno(out.get()), fileno(err.get()));
  const auto size = [&] { return lseek(fileno(out.get()), 0, SEEK_END); };
  for (int i = 0; i < 3000 && size() == 0; ++i) usleep(10000);
  kill(pid, SIGINT);
  CHECK(wait_for(pid) == 130);
  CHECK(content_of(err.get()) == "tessera-bench: interrupted\n");
  CHECK(Json::parse(content_of(out.get())).at("test") == "prefill");
  CHECK(is_well_formed(slurp(svg.path())));
}

TEST_CASE("Ctrl-C within a test keeps the runs that have ended") {
  if (lacks_bench()) return;
  for (useconds_t wait = 250000;; wait *= 2) {  // nothing is told before: until one has ended, whatever runs beside this
    const File in = scratch(), out = scratch(), err = scratch();
    const pid_t pid = start(kBench,
                            {"--shape", "tiny", "--read-buffer", "4", "-n", "1", "--repeat", "1000", "--json"},
                            fileno(in.get()), fileno(out.get()), fileno(err.get()));
    usleep(wait);
    kill(pid, SIGINT);
    CHECK(wait_for(pid) == 130);  // also of a program that has not come to its handler yet
    const std::string text = content_of(out.get());
    if (text.empty() && wait < 30000000) continue;
    CHECK(content_of(err.get()) == "tessera-bench: interrupted\n");
    const Json line = Json::parse(text);
    CHECK(line.at("test") == "decode");
    CHECK(line.at("repeat") > 0);
    break;
  }
}

TEST_CASE("--worker measures what lines ask for, and goes on after one that makes no sense") {
  if (lacks_bench()) return;
  const Args args = {"--shape", "tiny", "--threads", two_threads(), "--read-buffer", "4", "--repeat", "1", "--worker",
                     "-p", "16", "-n", "4", "-b", "1", "--batch-depth", "5", "--depth", "20"};
  const Outcome got = run_program(kBench, args,
                                  R"({"test": "prefill", "n": 12}
{"test": "decode", "n": 1, "steps": 3}
{"test": "batch", "n": 3, "steps": 2}
{"test": "depth", "n": 20}
{"test": "depth", "n": 9, "steps": 1}
{"test": "depth", "n": 9, "steps": 2}

nothing
{"test": "sing", "n": 1}
{"test": "prefill"}
{"test": "prefill", "n": -1}
{"test": "prefill", "n": 1e3}
{"test": "prefill", "n": 99999999999999999999}
{"test": "prefill", "n": 25}
{"test": "decode", "steps": 0}
{"test": "decode", "steps": 24}
{"test": "depth", "n": 21, "steps": 4}
{"test": "batch", "n": 5000}
{"test": "prefill", "n": 24})");
  const auto lines = lines_of(got);
  REQUIRE(lines.size() == 20);
  CHECK(got.err.empty());
  CHECK(lines[0].at("version").get<std::string>().starts_with("tessera "));
  CHECK(lines[0].at("features").size() == 1);
  const std::vector<std::string> tests = {"prefill", "decode", "batch", "depth", "depth", "depth"};
  const std::vector<int> rows = {12, 1, 3, 1, 1, 1}, depths = {0, 0, 5, 20, 9, 9};
  for (std::size_t i = 0; i < tests.size(); ++i) {
    INFO(lines[i + 1].dump());
    CHECK(lines[i + 1].at("test") == tests[i]);
    CHECK(lines[i + 1].at("rows") == rows[i]);
    CHECK(lines[i + 1].at("depth") == depths[i]);
    CHECK(lines[i + 1].at("tokens_per_s") > 0);
  }
  // Bytes a token tell the number of steps: keys and values of more positions are read.
  CHECK(lines[6].at("bytes_per_token") > lines[5].at("bytes_per_token"));
  for (std::size_t i = 7; i + 1 < lines.size(); ++i) {
    INFO(lines[i].dump());
    CHECK(lines[i].size() == 1);
    CHECK_FALSE(lines[i].at("error").get<std::string>().empty());
  }
  CHECK(lines.back().at("rows") == 24);
}

TEST_CASE("Ctrl-C ends a worker that nobody asks for anything") {
  if (lacks_bench()) return;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const File out = scratch(), err = scratch();
  const pid_t pid = start(kBench, {"--shape", "tiny", "--read-buffer", "4", "--worker"}, ends[0], fileno(out.get()),
                          fileno(err.get()));
  close(ends[0]);
  for (int i = 0; i < 3000 && lseek(fileno(out.get()), 0, SEEK_END) == 0; ++i) usleep(10000);
  usleep(100000);  // until it reads
  kill(pid, SIGINT);
  CHECK(wait_for(pid) == 130);
  close(ends[1]);
  CHECK(content_of(err.get()) == "tessera-bench: interrupted\n");
  CHECK(Json::parse(content_of(out.get())).contains("version"));
}

TEST_CASE("the shapes of the benchmarks are those of the models") {
  if (lacks_bench()) return;
  const Outcome got = bench({"--help"});
  for (const char* line : {"TinyLlama 1.1B", "22 layers of 2048, 32 heads and 4 of keys, FFN 5632, 32000 tokens",
                           "Llama 3 8B", "32 layers of 4096, 32 heads and 8 of keys, FFN 14336, 128256 tokens"}) {
    INFO(line);
    CHECK(got.out.find(line) != std::string::npos);
  }
}

}  // namespace test_bench
