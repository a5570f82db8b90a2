#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include <tessera/engine.hpp>

namespace tessera::convert {

namespace {

constexpr std::size_t kWindow = 512, kLeast = 32, kMost = 4096, kAtOnce = 64;

// Returns -ln p, where p is the probability that the logits give the token.
double loss_of(std::span<const float> logits, Token token) {
  const double most = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return std::log(sum) + most - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

}  // namespace

void MeanSquares::see(std::string_view tensor, std::uint32_t, std::span<const float> input) noexcept {
  const auto at = sums_.find(tensor);
  if (at == sums_.end() || at->second.squares.size() != input.size()) return;
  ++at->second.rows;
  for (std::size_t i = 0; i < input.size(); ++i) at->second.squares[i] += double{input[i]} * double{input[i]};
}

std::vector<float> MeanSquares::of(std::string_view tensor) const {
  const auto at = sums_.find(tensor);
  std::vector<float> means;
  if (at == sums_.end() || at->second.rows == 0) return means;
  for (const double square : at->second.squares) means.push_back(static_cast<float>(square / static_cast<double>(at->second.rows)));
  return means;
}

Result<Text> Text::read(const std::filesystem::path& file, const ModelSource& model) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) return Error(ErrorCode::io, "cannot be read", file.string());
  const auto tokenizer = Tokenizer::from_settings(model.settings());
  if (!tokenizer) return tokenizer.error();
  bytes.resize(std::min<std::size_t>(bytes.size(), kMost * 16));  // the rest is not used
  auto tokens = tokenizer->encode(bytes);
  if (!tokens) return tokens.error();
  if (tokens->size() < kLeast) {
    return Error(ErrorCode::invalid_argument, fmt::format("has {} tokens; a text to measure with needs {}, and some hundreds say more", tokens->size(), kLeast),
                 file.string());
  }
  Text text;
  text.tokens_ = *std::move(tokens);
  text.tokens_.resize(std::min(text.tokens_.size(), kMost));
  return text;
}

Result<double> Text::perplexity(const ModelSource& model, std::uint32_t threads, InputObserver* observer) const {
  EngineOptions options;
  options.threads = threads;
  options.input_observer = observer;
  options.kv.dtype = DType::f32;
  const auto engine = Engine::load(model, options);
  if (!engine) return engine.error();
  const std::size_t window = std::min<std::size_t>(kWindow, engine->spec().context), vocab = engine->spec().vocab_size;
  double loss = 0.0;
  std::size_t counted = 0;
  for (std::size_t first = 0; first + 1 < tokens_.size(); first += window) {
    const std::span<const Token> read = std::span(tokens_).subspan(first, std::min(window, tokens_.size() - first));
    auto session = engine->session();
    if (!session) return session.error();
    for (std::size_t at = 0; at < read.size(); at += kAtOnce) {
      const std::size_t count = std::min(kAtOnce, read.size() - at);
      const auto logits = session->append(read.subspan(at, count), {.logits = LogitsOf::all});
      if (!logits) return logits.error();
      for (std::size_t i = 0; i < count && at + i + 1 < read.size(); ++i, ++counted) {
        loss += loss_of(std::span(logits->values).subspan(i * vocab, vocab), read[at + i + 1]);
      }
    }
  }
  return std::exp(loss / static_cast<double>(std::max<std::size_t>(counted, 1)));
}

}  // namespace tessera::convert
