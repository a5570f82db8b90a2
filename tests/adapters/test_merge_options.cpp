// EngineOptions::merge, and the programs that merge and show adapters.
#include <cmath>
#include <cstdlib>

#include <sys/wait.h>

#include <tessera/unstable/adapters/adapter_listing.hpp>
#include <tessera/unstable/adapters/merged_model.hpp>

#include "adapters/widened_source.hpp"
#include "adapters/written_adapter.hpp"

namespace test_merge_options {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

// The output of one run of a program, of both streams, and its exit status.
struct Run {
  int status = -1;
  std::string output;
};

Run run(const std::string& program, const std::string& arguments) {
  const AdapterCopy place;
  const fs::path out = place.path() / "out";
  const int status = std::system((std::string(TESSERA_BIN_DIR "/") + program + " " + arguments + " >" + out.string() + " 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of_file(out)};
}

bool lacks(const std::string& program) {
  if (fs::exists(std::string(TESSERA_BIN_DIR "/") + program)) return false;
  tests::skip(program + " (not built)");
  return true;
}

std::vector<float> logits_of(const Engine& engine) {
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  return all_logits(session, std::vector<Token>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 12);
}

std::vector<float> logits_of(const fs::path& model, std::vector<MergedAdapter> adapters = {}) {
  EngineOptions options{.tokenizer = TokenizerUse::none, .threads = 2};
  options.merge = std::move(adapters);
  return logits_of(must(Engine::load(model, options)));
}

float largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  float difference = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::fabs(a[i] - b[i]));
  return difference;
}

TEST_CASE("an engine loads with adapters merged, and its plan is that of the merged model", "[adapters]") {
  const fs::path model = golden_folder("llama3-tied");
  const auto without = logits_of(model), with = logits_of(model, {{adapter_folder("llama")}}),
             half = logits_of(model, {{adapter_folder("llama"), 0.5f}});
  CHECK(largest_difference(without, with) > 0.1f);
  CHECK(largest_difference(half, with) > 0.05f);
  CHECK(logits_of(model, {{adapter_folder("llama"), 0.0f}}) == without);
  const auto source = must(open_model(model));
  EngineOptions options{.tokenizer = TokenizerUse::none, .threads = 2};
  const Plan plain = must(Engine::plan(*source, options));
  options.merge = {{adapter_folder("llama")}};
  const Plan merged = must(Engine::plan(*source, options));
  CHECK(merged.weights == plain.weights);
  CHECK(merged.loading > plain.loading);
  CHECK(must(Engine::load(*source, options)).plan().weights == plain.weights);
  // An adapter of the table alone: the model gets an output matrix.
  options.merge = {{adapter_folder("llama-embed-tied")}};
  CHECK(must(Engine::plan(*source, options)).weights > plain.weights);
}

TEST_CASE("adapters that cannot be merged are errors that name them", "[adapters]") {
  const auto problem = [](const fs::path& model, std::vector<MergedAdapter> adapters) {
    EngineOptions options{.tokenizer = TokenizerUse::none};
    options.merge = std::move(adapters);
    const auto engine = Engine::load(model, options);
    const auto plan = Engine::plan(*must(open_model(model)), options);
    REQUIRE_FALSE(engine);
    REQUIRE_FALSE(plan);
    CHECK(engine.error().text() == plan.error().text());
    return engine.error().text();
  };
  const fs::path model = golden_folder("llama3-tied");
  CHECK(problem(model, {{adapter_folder("llama-alora")}}).find("aLoRA") != std::string::npos);
  CHECK(problem(model, {{adapter_folder("llama")}, {adapter_folder("nothing")}}).find("nothing") != std::string::npos);
  CHECK(problem(model, {{adapter_folder("llama"), std::numeric_limits<float>::quiet_NaN()}}).find("scale") != std::string::npos);
  CHECK(problem(golden_folder("qwen35"), {{adapter_folder("gpt2")}}).find("another model") != std::string::npos);
}

TEST_CASE("a merged tensor that is read in pieces has the bytes of one that is read whole", "[adapters]") {
  for (const auto& [adapter, model] :
       {std::pair{"llama-dora", "llama-bias"}, {"mixtral", "mixtral"}, {"llama-both-tied", "llama3-tied"}, {"deepseek-v3", "deepseek-v3"}}) {
    const std::vector<MergedAdapter> adapters = {{adapter_folder(adapter)}};
    const auto source = must(merged_model(must(open_model(golden_folder(model))), adapters));
    for (const TensorInfo& tensor : source->tensors()) {
      CAPTURE(adapter, std::string(tensor.name));
      CHECK(source->find_tensor(tensor.name) == &tensor);
      std::vector<std::byte> whole(tensor.bytes), pieces(tensor.bytes);
      must(source->read(tensor, 0, whole));
      std::size_t size = 1;
      for (std::size_t at = 0; at < pieces.size(); at += size) {
        size = std::min(size % 997 * 3 + 1, pieces.size() - at);
        must(source->read(tensor, at, std::span(pieces).subspan(at, size)));
      }
      REQUIRE(whole == pieces);
      CHECK_FALSE(source->read(tensor, tensor.bytes, std::span(pieces).first(1)));
    }
  }
}

// Returns a model's tensor as F32.
std::vector<float> values_of(const ModelSource& source, std::string_view name) {
  const TensorInfo& tensor = *source.find_tensor(name);
  std::vector<std::byte> bytes(tensor.bytes);
  must(source.read(tensor, 0, bytes));
  const auto block = *formats::block_of(tensor.dtype);
  std::vector<float> values(tensor.bytes / block.bytes * block.values);
  must(formats::decode_row(tensor.dtype, bytes, values));
  return values;
}

TEST_CASE("a merged matrix is the exact sum, rounded once to the format of the tensor", "[adapters]") {
  if (lacks("tessera-convert")) return;
  const AdapterCopy place;
  const std::vector<MergedAdapter> adapters = {{adapter_folder("gemma2"), 0.75f}};
  for (const auto& [format, bound] : {std::pair{"F32", 0.0f}, {"F16", 0x1p-11f}, {"BF16", 0x1p-8f}, {"Q8_0", 1.0f / 127.0f}, {"Q4_0", 1.0f / 7.0f}}) {
    CAPTURE(format);
    const fs::path file = place.path() / (std::string(format) + ".gguf");
    REQUIRE(run("tessera-convert", golden_folder("gemma2").string() + " " + file.string() + " " + format).status == 0);
    const auto model = must(open_model(file));
    const auto merged = must(merged_model(model, adapters)), exact = must(merged_model(std::make_shared<WidenedSource>(model), adapters));
    for (const std::string_view name : {"blk.0.attn_q.weight", "blk.1.ffn_down.weight"}) {
      const auto rounded = values_of(*merged, name), sum = values_of(*exact, name), before = values_of(*model, name);
      CHECK(merged->find_tensor(name)->dtype == model->find_tensor(name)->dtype);
      CHECK(sum != before);
      const std::size_t row = model->find_tensor(name)->dims[0];
      for (std::size_t i = 0; i < sum.size(); ++i) {
        float most = 0.0f;  // of the row: blocks of quantised formats share a scale
        for (std::size_t k = i / row * row; k < (i / row + 1) * row; ++k) most = std::max(most, std::fabs(sum[k]));
        REQUIRE(std::fabs(rounded[i] - sum[i]) <= bound * most);
      }
    }
  }
}

TEST_CASE("tessera-convert --merge writes the model that an engine merges while it loads", "[adapters]") {
  if (lacks("tessera-convert")) return;
  const AdapterCopy place;
  const fs::path file = place.path() / "merged.gguf";
  const std::string model = golden_folder("llama3-tied").string(), first = adapter_folder("llama").string(),
                    second = adapter_folder("llama-embed-tied").string();
  const Run done = run("tessera-convert", model + " " + file.string() + " --merge " + first + ":0.7 --merge " + second);
  INFO(done.output);
  REQUIRE(done.status == 0);
  CHECK(logits_of(file) == logits_of(golden_folder("llama3-tied"), {{first, 0.7f}, {second}}));
  // A GGUF file as IN, and the other order of arguments.
  const fs::path plain = place.path() / "plain.gguf", again = place.path() / "again.gguf";
  REQUIRE(run("tessera-convert", model + " " + plain.string()).status == 0);
  REQUIRE(run("tessera-convert", "--merge " + first + ":0.7 " + plain.string() + " " + again.string()).status == 0);
  CHECK(logits_of(again) == logits_of(plain, {{first, 0.7f}}));
  const Run alora = run("tessera-convert", model + " " + again.string() + " --merge " + adapter_folder("llama-alora").string());
  CHECK(alora.status == 1);
  CHECK(alora.output.find("aLoRA") != std::string::npos);
  CHECK(run("tessera-convert", model + " " + again.string() + " --merge nothing:0.5").status == 1);
  const fs::path adapter = place.path() / "a.gguf";
  const OpenedBase base(golden_folder("llama3-tied"));
  write_gguf_adapter(adapter, must(base.read(adapter_folder("llama"))), base);
  CHECK(run("tessera-convert", plain.string() + " " + adapter.string() + " --merge " + adapter.string()).status == 2);
}

TEST_CASE("generate --merge computes with the adapter", "[adapters]") {
  if (lacks("generate")) return;
  const std::string common =
      "-m " + golden_folder("llama3-tied").string() + " --prompt-ids '1 2 3 4' --greedy -n 12 --print-tokens --threads 2 --ignore-eos --no-echo";
  const Run plain = run("generate", common), with = run("generate", common + " --merge " + adapter_folder("llama").string()),
            none = run("generate", common + " --merge " + adapter_folder("llama").string() + ":0");
  INFO(with.output);
  CHECK(plain.status == 0);
  CHECK(with.status == 0);
  const auto ids = [](const Run& from) { return from.output.substr(0, from.output.find('\n')); };
  CHECK(ids(plain) != ids(with));
  CHECK(ids(plain) == ids(none));
  CHECK(run("generate", common + " --merge nothing").status == 1);
  const Run endless = run("generate", common + " --merge " + adapter_folder("llama").string() + ":nan");
  CHECK(endless.status == 1);
  CHECK(endless.output.find("the scale is nan") != std::string::npos);
  CHECK(run("generate", common + " --merge").status == 2);
}

TEST_CASE("tessera-inspect shows what an adapter is", "[adapters]") {
  if (lacks("tessera-inspect")) return;
  const Run text = run("tessera-inspect", adapter_folder("llama-alora").string());
  INFO(text.output);
  CHECK(text.status == 0);
  for (const std::string_view word : {"LoRA (PEFT)", "llama-alora", "7 11 5", "rank", "lora_A.weight", "F32"}) {
    CHECK(text.output.find(word) != std::string::npos);
  }
  const Json json = must(Json::parse(run("tessera-inspect", "--json " + adapter_folder("llama-dora").string()).output));
  const Json* adapter = json.find("adapter");
  REQUIRE(adapter != nullptr);
  CHECK(*adapter->find("dora")->boolean());
  CHECK(adapter->find("ranks")->elements()->size() == 1);
  CHECK(json.find("tensors")->elements()->size() > 10);
  // The same adapter in GGUF.
  const AdapterCopy place;
  const OpenedBase base(golden_folder("llama3-tied"));
  write_gguf_adapter(place.path() / "a.gguf", must(base.read(adapter_folder("llama"))), base, {.alpha = 6.0f, .invocation = {7}});
  const Run gguf = run("tessera-inspect", (place.path() / "a.gguf").string());
  INFO(gguf.output);
  for (const std::string_view word : {"LoRA (GGUF)", "the base", "llama", "6 / rank", ".lora_a"}) CHECK(gguf.output.find(word) != std::string::npos);
  CHECK(run("tessera-inspect", "--key adapter.type " + (place.path() / "a.gguf").string()).output == "lora\n");
  const Run refused = run("tessera-inspect", adapter_folder("saved-modules").string());
  CHECK(refused.status == 1);
  CHECK(refused.output.find("modules_to_save") != std::string::npos);
  const auto listing = must(list_adapter(adapter_folder("llama-patterns")));
  CHECK(std::ranges::is_sorted(listing.ranks));
  CHECK(listing.ranks.size() > 2);
}

}  // namespace test_merge_options
