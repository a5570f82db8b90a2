#include "prune.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <tessera/engine.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "measure.hpp"
#include "sizes.hpp"
#include "terminal_text.hpp"

namespace tessera::convert {

namespace {

constexpr std::size_t kColumnsAtOnce = 32;  // kept columns come in multiples of this, so that kernels run at full width

Error cancelled() { return {ErrorCode::cancelled, "interrupted; nothing was written"}; }

// Something that may be left out of a layer: some FFN columns, or a KV head. `share`: how much it contributes to the layer's output
// (prune.hpp).
struct Candidate {
  std::size_t layer;
  std::uint32_t first, count;  // elements
  double share;
};

// Chooses, on one model, the layers, heads and columns to leave out.
class Pruning {
 public:
  Pruning(std::shared_ptr<const ModelSource> model, const quantize::Importance& importance, std::uint32_t threads, const volatile std::sig_atomic_t* stop)
      : model_(std::move(model)), importance_(importance), threads_(threads), stop_(stop) {}

  Status begin(const PruneOptions& options) {
    {  // one engine at a time
      auto engine = Engine::load(*model_, {.tokenizer = TokenizerUse::none, .threads = threads_});
      if (!engine) return engine.error();
      spec_ = engine->spec();
    }
    if (auto ok = check_prunable(*model_, spec_); !ok) return ok;
    cut_ = whole_cut(spec_);
    if (options.text.empty()) return {};
    auto text = Text::read(options.text, *model_);
    if (!text) return text.error();
    text_ = *std::move(text);
    for (const TensorInfo& tensor : model_->tensors()) {
      if (tensor.name.ends_with("ffn_down.weight") || tensor.name.ends_with("attn_output.weight")) measured_.expect(tensor.name, tensor.dims[0]);
    }
    auto before = text_->perplexity(*model_, threads_, &measured_);
    if (!before) return before.error();
    before_ = *before;
    return {};
  }

  // Leaves out `count` layers, one at a time: always the layer without which the perplexity is lowest.
  Status drop_layers(std::uint32_t count) {
    if (count >= cut_.size()) return Error(ErrorCode::invalid_argument, fmt::format("--prune: layers={}, and the model has {}", count, cut_.size()));
    for (std::uint32_t dropped = 0; dropped < count; ++dropped) {
      std::size_t best = 0;
      double lowest = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < cut_.size(); ++i) {
        if (*stop_ != 0) return cancelled();
        Cut without = cut_;
        without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
        const auto perplexity = text_->perplexity(PrunedSource(model_, spec_, without), threads_, nullptr);
        if (!perplexity) return perplexity.error();
        if (!(*perplexity < lowest)) continue;  // NaN is not lower
        lowest = *perplexity;
        best = i;
      }
      if (!std::isfinite(lowest)) return Error(ErrorCode::numeric, "the model gives no finite logits without a layer");
      fmt::print("without layer {:<4} perplexity {:.3f}\n", cut_[best].index, lowest);
      cut_.erase(cut_.begin() + static_cast<std::ptrdiff_t>(best));
    }
    return {};
  }

  Status drop_columns(double share) {
    std::vector<Candidate> candidates;
    for (std::size_t layer = 0; layer < cut_.size(); ++layer) {
      auto importances = importances_of(fmt::format("blk.{}.ffn_down.weight", cut_[layer].index));
      if (!importances) return importances.error();
      add_candidates(layer, *importances, unit_of(fmt::format("blk.{}.ffn_down.weight", cut_[layer].index)), candidates);
    }
    const auto drop = [&](const Candidate& least) {
      std::vector<std::uint32_t>& columns = cut_[least.layer].columns;
      if ((columns.size() - least.count) * 4 < spec_.layers[cut_[least.layer].index].ffn_dim) return false;
      std::erase_if(columns, [&](std::uint32_t column) { return column >= least.first && column < least.first + least.count; });
      return true;
    };
    return drop_least(candidates, share, drop, &Pruning::fill_columns);
  }

  Status drop_heads(double share) {
    std::vector<Candidate> candidates;
    for (std::size_t layer = 0; layer < cut_.size(); ++layer) {
      const std::string name = fmt::format("blk.{}.attn_output.weight", cut_[layer].index);
      const LayerSpec& spec = spec_.layers[cut_[layer].index];
      const std::uint32_t each = spec.n_heads / spec.n_kv_heads * spec.value_dim;
      if (each % unit_of(name) != 0) {
        return Error(ErrorCode::unsupported, fmt::format("its columns can be left out in blocks of {}, and a KV head has {}: take the model in F16", unit_of(name), each), name);
      }
      auto importances = importances_of(name);
      if (!importances) return importances.error();
      add_candidates(layer, *importances, each, candidates);
      for (auto at = candidates.end() - spec.n_kv_heads; at != candidates.end(); ++at) {
        at->first /= each;
        at->count = 1;
      }
    }
    const auto drop = [&](const Candidate& least) {
      std::vector<std::uint32_t>& groups = cut_[least.layer].groups;
      if (groups.size() == 1) return false;
      std::erase(groups, least.first);
      return true;
    };
    return drop_least(candidates, share, drop, nullptr);
  }

  Result<std::shared_ptr<const PrunedSource>> finish() const {
    auto result = std::make_shared<const PrunedSource>(model_, spec_, cut_);
    print(*result);
    if (!text_) return result;
    const auto after = text_->perplexity(*result, threads_, nullptr);
    if (!after) return after.error();
    fmt::print("perplexity       {:.3f} before, {:.3f} after\n", before_, *after);
    return result;
  }

 private:
  // Returns how many neighbouring columns of a matrix are kept or left out together.
  [[nodiscard]] std::uint32_t unit_of(std::string_view tensor) const {
    return static_cast<std::uint32_t>(formats::block_of(model_->find_tensor(tensor)->dtype)->values);
  }

  // Returns the importance of each column of a matrix [inputs]: the mean square of its input, times the sum of the squares of its weights.
  Result<std::vector<double>> importances_of(const std::string& name) const {
    const TensorInfo* tensor = model_->find_tensor(name);
    if (tensor == nullptr) return Error(ErrorCode::not_found, "the model has no such tensor", name);
    const auto block = formats::block_of(tensor->dtype);
    std::vector<std::byte> bytes(tensor->dims[0] / block->values * block->bytes);
    std::vector<float> row(tensor->dims[0]);
    std::vector<double> sums(tensor->dims[0]);
    for (std::uint64_t i = 0; i < tensor->dims[1]; ++i) {
      if (auto ok = model_->read(*tensor, i * bytes.size(), bytes); !ok) return std::move(ok).error();
      if (auto ok = formats::decode_row(tensor->dtype, bytes, row); !ok) return std::move(ok).error();
      for (std::size_t column = 0; column < row.size(); ++column) sums[column] += double{row[column]} * double{row[column]};
    }
    const std::vector<float>* given = importance_.of(name);
    const std::vector<float> inputs = given != nullptr ? *given : measured_.of(name);
    for (std::size_t column = 0; column < inputs.size() && column < sums.size(); ++column) sums[column] *= double{inputs[column]};
    return sums;
  }

  static void add_candidates(std::size_t layer, const std::vector<double>& importances, std::uint32_t unit, std::vector<Candidate>& into) {
    const double all = std::max(std::accumulate(importances.begin(), importances.end(), 0.0), std::numeric_limits<double>::min());
    for (std::uint32_t first = 0; first < importances.size(); first += unit) {
      const double own = std::accumulate(importances.begin() + first, importances.begin() + first + unit, 0.0);
      into.push_back({.layer = layer, .first = first, .count = unit, .share = own / all});
    }
  }

  // Drops the candidates with the smallest shares, until `share` of all elements is gone. `repair` then corrects each layer's list.
  template <class Drop>
  Status drop_least(std::vector<Candidate> candidates, double share, const Drop& drop, void (Pruning::*repair)(const std::vector<Candidate>&)) {
    for (const Candidate& candidate : candidates) {
      if (std::isfinite(candidate.share)) continue;
      return Error(ErrorCode::numeric, fmt::format("layer {} has weights or measured inputs that are not finite: nothing can be said of what its parts are worth", candidate.layer));
    }
    std::ranges::stable_sort(candidates, {}, &Candidate::share);
    std::uint64_t all = 0, gone = 0;
    for (const Candidate& candidate : candidates) all += candidate.count;
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(all));
    for (const Candidate& candidate : candidates) {
      if (gone + candidate.count > wanted) break;
      if (drop(candidate)) gone += candidate.count;
    }
    if (repair != nullptr) (this->*repair)(candidates);
    return {};
  }

  // Keeps some more columns, so that each layer has a multiple of kColumnsAtOnce columns: of the columns that were to be left out, puts
  // back the most important ones. `candidates` are sorted by importance, the least important first.
  void fill_columns(const std::vector<Candidate>& candidates) {
    for (std::size_t layer = 0; layer < cut_.size(); ++layer) {
      std::vector<std::uint32_t>& columns = cut_[layer].columns;
      for (auto at = candidates.rbegin(); at != candidates.rend() && columns.size() % kColumnsAtOnce != 0; ++at) {
        if (at->layer != layer || std::ranges::binary_search(columns, at->first)) continue;
        for (std::uint32_t i = 0; i < at->count; ++i) columns.push_back(at->first + i);
        std::ranges::sort(columns);
      }
    }
  }

  void print(const PrunedSource& left) const {
    const auto bytes_of = [](std::span<const TensorInfo> tensors) {
      std::uint64_t bytes = 0;
      for (const TensorInfo& tensor : tensors) bytes += tensor.bytes;
      return bytes;
    };
    fmt::print("layer  of the model's  KV heads  FFN columns\n");
    for (std::size_t i = 0; i < cut_.size(); ++i) {
      const LayerSpec& spec = spec_.layers[cut_[i].index];
      fmt::print("{:>5}  {:>14}  {:>3} of {:<3}  {:>5} of {}\n", i, cut_[i].index, cut_[i].groups.size(), spec.n_kv_heads, cut_[i].columns.size(), spec.ffn_dim);
    }
    const std::uint64_t before = bytes_of(model_->tensors()), after = bytes_of(left.tensors());
    fmt::print("weights          {:.1f} MB before, {:.1f} MB after ({:.1f} %)\n", static_cast<double>(before) / 1e6, static_cast<double>(after) / 1e6,
               100.0 * static_cast<double>(after) / static_cast<double>(before));
  }

  std::shared_ptr<const ModelSource> model_;
  const quantize::Importance& importance_;
  std::uint32_t threads_;
  const volatile std::sig_atomic_t* stop_;
  ModelSpec spec_;
  Cut cut_;
  std::optional<Text> text_;
  MeanSquares measured_;
  double before_ = 0.0;
};

}  // namespace

Status parse_prune(std::string_view text, PruneOptions& into) {
  const auto wrong = [&](std::string_view part) {
    return Error(ErrorCode::invalid_argument, fmt::format("--prune: \"{}\": give layers=N, heads=SHARE or ffn=SHARE (0.25: a quarter), with commas between", part));
  };
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return wrong(part);
    const std::string_view name = part.substr(0, equals), number = part.substr(equals + 1);
    const char* const end = number.data() + number.size();
    if (name == "layers") {
      const auto [stop, error] = std::from_chars(number.data(), end, into.layers);
      if (error != std::errc() || stop != end) return wrong(part);
      continue;
    }
    if (name != "heads" && name != "ffn") return wrong(part);
    double& share = name == "heads" ? into.heads : into.ffn;
    const auto [stop, error] = std::from_chars(number.data(), end, share);
    if (error != std::errc() || stop != end || !(share >= 0.0 && share < 1.0)) return wrong(part);
  }
  if (!into.any()) return wrong("");
  return {};
}

Result<std::shared_ptr<const PrunedSource>> prune(std::shared_ptr<const ModelSource> model, const quantize::Importance& importance,
                                                  const PruneOptions& options, std::uint32_t threads, const volatile std::sig_atomic_t* stop) {
  Pruning pruning(std::move(model), importance, threads, stop);
  if (auto ok = pruning.begin(options); !ok) return std::move(ok).error();
  if (auto ok = pruning.drop_layers(options.layers); !ok) return std::move(ok).error();
  if (auto ok = pruning.drop_heads(options.heads); !ok) return std::move(ok).error();
  if (auto ok = pruning.drop_columns(options.ffn); !ok) return std::move(ok).error();
  if (*stop != 0) return cancelled();
  return pruning.finish();
}

}  // namespace tessera::convert
