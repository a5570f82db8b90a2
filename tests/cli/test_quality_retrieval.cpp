// tessera-quality --retrieval: figures that can be computed by hand, formats and dimensions, and what is refused.
#include <algorithm>
#include <cmath>

#include "program.hpp"

namespace test_quality_retrieval {

using namespace tessera::tests::cli;
namespace fs = std::filesystem;

namespace {

const std::string kTool = TESSERA_BIN_DIR "/tessera-quality";
const std::string kEmbedder = TESSERA_SOURCE_DIR "/models/tessera-stories-draft.gguf";  // Q8_0, 128 dimensions

bool lacks_tool() { return lacks(kTool, "tessera-quality (not built)"); }

double value_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\":");
  CAPTURE(json, key);
  REQUIRE(at != std::string::npos);
  return std::stod(json.substr(at + key.size() + 3));
}

// Texts in the form of BEIR; the folder goes with the object. Each question is a document's text, so that this document is the nearest.
class Data {
 public:
  explicit Data(const std::string& right) {
    std::string path = (fs::temp_directory_path() / "tessera-retrieval-XXXXXX").string();
    REQUIRE(mkdtemp(path.data()) != nullptr);
    folder_ = path;
    fs::create_directory(folder_ / "qrels");
    write("corpus.jsonl", R"({"_id": "dog", "title": "", "text": "The dog ran in the park."}
{"_id": "cake", "text": "They baked a big cake for mom."}
)");
    write("queries.jsonl", R"({"_id": "1", "text": "The dog ran in the park."}
{"_id": "2", "text": "They baked a big cake for mom."}
{"_id": "unused", "text": "Nobody asks this."}
)");
    write("qrels/test.tsv", "query-id\tcorpus-id\tscore\n" + right);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  ~Data() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  void write(const std::string& name, const std::string& content) const { std::ofstream(folder_ / name, std::ios::binary) << content; }
  [[nodiscard]] Outcome measure(Args args = {"--json"}) const {
    args.insert(args.begin(), {kEmbedder, folder_.string(), "--retrieval"});
    return run_program(kTool, args);
  }

 private:
  fs::path folder_;
};

}  // namespace

TEST_CASE("recall and nDCG are those that the definitions give") {
  if (lacks_tool()) return;
  const auto check = [](const std::string& right, double recall_1, double recall_3, double ndcg) {
    const Outcome got = Data(right).measure();
    CAPTURE(right, got.err);
    REQUIRE(got.status == 0);
    CHECK(value_of(got.out, "dimensions") == 128);
    CHECK(std::abs(value_of(got.out, "recall_1") - recall_1) < 1e-12);
    CHECK(std::abs(value_of(got.out, "recall_3") - recall_3) < 1e-12);
    CHECK(std::abs(value_of(got.out, "recall_10") - recall_3) < 1e-12);
    CHECK(std::abs(value_of(got.out, "ndcg_10") - ndcg) < 1e-12);
  };
  const double second = 1.0 / std::log2(3.0);  // what a right document counts in the second place
  check("1\tdog\t1\n2\tcake\t1\n", 1.0, 1.0, 1.0);
  check("1\tcake\t1\n", 0.0, 1.0, second);                                  // the right one is second
  check("1\tdog\t1\n1\tcake\t2\n", 0.5, 1.0, (1 + 3 * second) / (3 + second));  // the better one is second
  check("1\tdog\t1\n2\tdog\t1\n2\tcake\t0\n", 0.5, 1.0, (1 + second) / 2);  // the mean of two questions
}

TEST_CASE("there is a row for each format and number of dimensions") {
  if (lacks_tool()) return;
  const Data data("1\tdog\t1\n2\tcake\t1\n");
  const Outcome got = data.measure({"--json", "--formats", "f32,Q8_0,q4_0", "--dimensions", "128,32"});
  CHECK(got.err.empty());
  REQUIRE(got.status == 0);
  std::vector<std::string> rows;
  for (std::size_t at = 0, end; (end = got.out.find('\n', at)) != std::string::npos; at = end + 1) rows.push_back(got.out.substr(at, end - at));
  REQUIRE(rows.size() == 6);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(value_of(rows[i], "dimensions") == (i % 2 == 0 ? 128 : 32));
    CHECK(rows[i].find(i < 2 ? "\"F32\"" : i < 4 ? "\"Q8_0\"" : "\"Q4_0\"") != std::string::npos);
    CHECK(value_of(rows[i], "recall_1") == 1.0);
  }
  CHECK(value_of(rows[0], "weights_mb") > 2.5 * value_of(rows[2], "weights_mb"));
  CHECK(value_of(rows[2], "weights_mb") > 1.2 * value_of(rows[4], "weights_mb"));
  const Outcome table = data.measure({});
  CHECK(table.out.find("nDCG@10\nQ8_0") != std::string::npos);
  CHECK(table.out.find("2 documents, 2 questions\n") != std::string::npos);
}

TEST_CASE("the shipped texts can be read") {
  if (lacks_tool()) return;
  const Outcome got = run_program(kTool, {kEmbedder, TESSERA_SOURCE_DIR "/tests/data/quality/retrieval", "--retrieval"});
  CHECK(got.status == 0);
  CHECK(got.out.find("40 documents, 40 questions\n") != std::string::npos);
}

TEST_CASE("texts and options that do not fit are refused with a sentence") {
  if (lacks_tool()) return;
  const auto refused = [](const Outcome& got, int status, const std::string& sentence) {
    CAPTURE(got.err, sentence);
    CHECK(got.status == status);
    CHECK(got.err.starts_with("tessera-quality: "));
    CHECK(std::ranges::count(got.err, '\n') == 1);
    CHECK(got.err.find(sentence) != std::string::npos);
  };
  refused(Data("1\tdog\n").measure(), 1, "test.tsv: line 2: three columns are expected");
  refused(Data("1\tdog\t1\n3\tdog\t1\n").measure(), 1, "line 3: queries.jsonl has no such question");
  refused(Data("1\tcat\t1\n").measure(), 1, "line 2: corpus.jsonl has no such document");
  refused(Data("1\tdog\tnan\n").measure(), 1, "the score is no number from 0 to 30");
  refused(Data("1\tdog\t0\n").measure(), 1, "no question has a right document");
  const Data data("1\tdog\t1\n");
  refused(data.measure({"--dimensions", "129"}), 1, "--dimensions 129: the model's vectors have 128");
  refused(data.measure({"--dimensions", "0"}), 2, "--dimensions");
  refused(data.measure({"--formats", "q5"}), 1, "--formats");
  refused(data.measure({"--formats", "q4_k_m"}), 1, "is a mix of formats");
  refused(data.measure({"--caches", "f16"}), 2, "--retrieval");
  refused(run_program(kTool, {kEmbedder, "x.tokens", "--formats", "f16"}), 2, "--retrieval");
  data.write("corpus.jsonl", "{\"_id\": \"dog\", \"text\": \"a\"}\n{\"_id\": \"dog\", \"text\": \"b\"}\n");
  refused(data.measure(), 1, "corpus.jsonl: line 2: the _id dog occurs twice");
  data.write("corpus.jsonl", "[1]\n");
  refused(data.measure(), 1, "line 1: _id is not a text");
  data.write("corpus.jsonl", "{\n");
  refused(data.measure(), 1, "corpus.jsonl: line 1");
  data.write("corpus.jsonl", "");
  refused(data.measure(), 1, "there is no text in the file");
}

}  // namespace test_quality_retrieval
