// tessera-quality as a user runs it: a run against itself, against a changed reference, and what it refuses.
#include <cmath>
#include <cstring>

#include <tessera/extend/files/model_file.hpp>

#include "program.hpp"

namespace test_quality_tool {

using namespace tessera::tests::cli;

namespace {

const std::string kTool = TESSERA_BIN_DIR "/tessera-quality";
const std::string kTokens = "# two documents\n1 2 3 4 5 6\n7 8 9\n";
const std::string kLong = TESSERA_SOURCE_DIR "/models/tessera-stories-draft.gguf";  // a context of 512
constexpr std::size_t kVocab = 104, kRows = 7, kHeader = 32;

bool lacks_tool() { return lacks(kTool, "tessera-quality (not built)"); }

Outcome quality(Args args) { return run_program(kTool, args); }

double value_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\":");
  REQUIRE(at != std::string::npos);
  return std::stod(json.substr(at + key.size() + 3));
}

}  // namespace

TEST_CASE("the reference is 0 from itself, by file and by a second engine") {
  if (lacks_tool()) return;
  const TemporaryFile tokens(kTokens), logits;
  const Args plain = {kTiny, tokens.path(), "--numerics", "reference", "--json"};
  const Outcome saved = quality({kTiny, tokens.path(), "--numerics", "reference", "--save", logits.path()});
  CHECK(saved.status == 0);
  CHECK(saved.err.empty());
  CHECK(slurp(logits.path()).size() == kHeader + kRows * kVocab * sizeof(float));
  Args by_file = plain;
  by_file.insert(by_file.end(), {"--reference", logits.path()});
  for (const Args& args : {plain, by_file}) {
    const Outcome got = quality(args);
    CHECK(got.status == 0);
    CHECK(value_of(got.out, "tokens") == kRows);
    CHECK(value_of(got.out, "mean_kl") == 0.0);
    CHECK(value_of(got.out, "same_first_choice") == 1.0);
    CHECK(value_of(got.out, "perplexity") == value_of(got.out, "reference_perplexity"));
  }
}

TEST_CASE("the mean KL is that of the logits") {
  if (lacks_tool()) return;
  const TemporaryFile tokens(kTokens), logits;
  REQUIRE(quality({kTiny, tokens.path(), "--numerics", "reference", "--save", logits.path()}).status == 0);
  std::string bytes = slurp(logits.path());
  std::vector<float> values(kRows * kVocab);
  std::memcpy(values.data(), bytes.data() + kHeader, values.size() * sizeof(float));

  // One row's reference is replaced by an even distribution: KL(even || q) = -log(vocab) - mean of log q.
  double sum = 0.0, mean = 0.0;
  for (std::size_t i = 0; i < kVocab; ++i) sum += std::exp(static_cast<double>(values[i]));
  for (std::size_t i = 0; i < kVocab; ++i) mean += (values[i] - std::log(sum)) / kVocab;
  std::fill_n(values.begin(), kVocab, 3.0f);
  std::memcpy(bytes.data() + kHeader, values.data(), values.size() * sizeof(float));
  std::ofstream(logits.path(), std::ios::binary) << bytes;

  const Outcome got = quality({kTiny, tokens.path(), "--numerics", "reference", "--reference", logits.path(), "--json"});
  CHECK(got.status == 0);
  const double kl = -std::log(static_cast<double>(kVocab)) - mean;
  CHECK(std::abs(value_of(got.out, "max_kl") - kl) < 1e-9 * kl);
  CHECK(std::abs(value_of(got.out, "mean_kl") - kl / kRows) < 1e-9 * kl);
}

TEST_CASE("an importance matrix has a row for each matrix, and counts the tokens that were read") {
  if (lacks_tool()) return;
  const TemporaryFile tokens(kTokens), imatrix;
  const Outcome done = quality({kTiny, tokens.path(), "--imatrix", imatrix.path()});
  CHECK(done.status == 0);
  CHECK(done.out.empty());
  CHECK(done.err.empty());
  const auto model = tessera::ModelFile::open(kTiny), file = tessera::ModelFile::open(imatrix.path());
  REQUIRE(file);
  CHECK(*file->metadata().string("general.type") == "imatrix");
  std::size_t matrices = 0;
  for (const auto& tensor : model->tensors()) {
    if (tensor.n_dims < 2 || tensor.name == "token_embd.weight") continue;
    CAPTURE(tensor.name);
    const auto* sums = file->find_tensor(std::string(tensor.name) + ".in_sum2");
    const auto* counts = file->find_tensor(std::string(tensor.name) + ".counts");
    REQUIRE((sums != nullptr && counts != nullptr));
    CHECK(sums->dims[0] == tensor.dims[0]);
    CHECK(sums->dims[1] == tensor.dims[2]);
    float count = 0;
    REQUIRE(file->read(*counts, 0, std::as_writable_bytes(std::span(&count, 1))));
    CHECK(count == kRows);
    std::vector<float> values(sums->dims[0]);
    REQUIRE(file->read(*sums, 0, std::as_writable_bytes(std::span(values))));
    for (const float value : values) CHECK((std::isfinite(value) && value >= 0));
    ++matrices;
  }
  CHECK(matrices > 6);
  CHECK(quality({kTiny, tokens.path(), "--imatrix", kTiny}).status == 1);
  CHECK(quality({kTiny, tokens.path(), "--imatrix", imatrix.path(), "--save", imatrix.path()}).status == 2);
}

TEST_CASE("a table of caches: nothing is lost in float32 with all tokens, and what is lost costs less memory") {
  if (lacks_tool()) return;
  std::string document;
  for (int i = 0; i < 400; ++i) document += std::to_string(100 + i * 37 % 900) + " ";
  const TemporaryFile tokens(document + "\n");
  const Outcome got = quality({kLong, tokens.path(), "--caches", "f32,f32:100%,int8,int4,f32:50%,f32:128:snapkv,f16:200:h2o", "--last", "90", "--json"});
  CHECK(got.err.empty());
  REQUIRE(got.status == 0);
  std::vector<std::string> rows;
  for (std::size_t at = 0, end; (end = got.out.find('\n', at)) != std::string::npos; at = end + 1) rows.push_back(got.out.substr(at, end - at));
  REQUIRE(rows.size() == 7);
  const double all = value_of(rows[0], "bytes_per_token");
  for (const std::string& row : rows) {
    CAPTURE(row);
    CHECK(value_of(row, "tokens") == 90);
    const bool is_whole = &row - rows.data() < 2;
    CHECK((value_of(row, "mean_kl") == 0.0) == is_whole);
    CHECK((value_of(row, "bytes_per_token") < all) != is_whole);
  }
  CHECK(value_of(rows[2], "mean_kl") < value_of(rows[3], "mean_kl"));
  CHECK(value_of(rows[2], "bytes_per_token") > value_of(rows[3], "bytes_per_token"));
  CHECK(value_of(rows[4], "bytes_per_token") < 0.6 * all);
  CHECK(value_of(rows[5], "bytes_per_token") < 0.4 * all);

  // Weights of 8 bits: what they multiply is rounded too, unless the numerics are the reference's.
  const Args few = {kLong, tokens.path(), "--caches", "int8", "--last", "40"};
  const auto with = [&](Args more) {
    more.insert(more.begin(), few.begin(), few.end());
    return quality(more).out;
  };
  CHECK(with({"--json"}).find("\"rounds_activations\":true") != std::string::npos);
  CHECK(with({}).find("Part of each KL comes from rounding what the weights multiply") != std::string::npos);
  CHECK(with({"--json", "--numerics", "reference"}).find("\"rounds_activations\":false") != std::string::npos);
  CHECK(with({"--numerics", "reference"}).find("Part of each KL") == std::string::npos);

  for (const auto& [caches, sentence] : {std::pair{"x", "\"x\" is not one of auto|f32|"}, {"f16:100", "is 128 tokens or more"}, {"f16:", "is 128 tokens or more"},
                                         {"f16:0%", "above 0 % and at most 100 %"}, {"f16:25%:some", "window, h2o or snapkv"}, {"f16,,f16", "is not one of auto|f32|"}}) {
    CAPTURE(caches);
    const Outcome refused = quality({kLong, tokens.path(), "--caches", caches});
    CHECK(refused.status == 2);
    CHECK(refused.err.find(sentence) != std::string::npos);
  }
  CHECK(quality({kLong, tokens.path(), "--caches", "f16", "--kv-dtype", "f16"}).status == 2);
  CHECK(quality({kLong, tokens.path(), "--last", "9"}).status == 2);
}

TEST_CASE("what does not fit is refused with a sentence") {
  if (lacks_tool()) return;
  const TemporaryFile tokens(kTokens), others("1 2 3 4 5 6\n7 8 10\n"), strange("1 104\n"), words("1 two\n"), logits;
  REQUIRE(quality({kTiny, tokens.path(), "--save", logits.path()}).status == 0);
  const auto refused = [&](const Args& args, int status, const std::string& sentence) {
    const Outcome got = quality(args);
    CHECK(got.status == status);
    CHECK(got.err.find(sentence) != std::string::npos);
  };
  refused({kTiny, others.path(), "--reference", logits.path()}, 1, "is of other tokens");
  refused({kTiny, tokens.path(), "--reference", tokens.path()}, 1, "is not a file of logits");
  refused({kTiny, strange.path()}, 1, "not in the vocabulary");
  refused({kTiny, words.path()}, 1, "not an id");
  refused({kTiny, tokens.path(), "--numerics", "exact"}, 2, "--numerics: \"exact\" is not one of auto|bf16");
  refused({kTiny, tokens.path(), "--reference", logits.path() + "-none"}, 1, "cannot be opened");
  const std::string bytes = slurp(logits.path());
  for (const std::size_t size : {kHeader + 100, bytes.size() + 1}) {
    std::filesystem::resize_file(logits.path(), size);
    refused({kTiny, tokens.path(), "--reference", logits.path()}, 1, "bytes, not the " + std::to_string(bytes.size()));
  }
  std::string with_nan = bytes;
  const float nan = std::nanf("");
  std::memcpy(with_nan.data() + kHeader + (kVocab + 3) * sizeof nan, &nan, sizeof nan);
  const TemporaryFile damaged(with_nan);
  refused({kTiny, tokens.path(), "--reference", damaged.path()}, 1, "document 1: the logits after token 2 are not all finite");
}

}  // namespace test_quality_tool
