// The kernels of recurrent layers on the emulator, beside plain code in the order of sums that cuda/kernels/recurrent.hpp states.
#include <emulator/launch.hpp>

#include <cmath>

#include "backend/recurrent_state.hpp"
#include "catch.hpp"
#include "core/math.hpp"
#include "core/math_wide.hpp"
#include "cuda/kernels/recurrent.hpp"
#include "paged_kv.hpp"

namespace test_cuda_recurrent_kernels {

using namespace tessera;        // NOLINT: a test
using namespace tessera::cuda;  // NOLINT
using tessera::test::random_floats;

namespace {

// Two runs: rows 0 to 4, which begin with a state, and rows 5 and 6, which begin with zeros. States are kept behind rows 2, 4 and 6.
class Rig {
 public:
  explicit Rig(std::size_t floats)
      : before_(random_floats(floats, 91)), states_(3, std::vector<float>(floats + kOffset / 4, 77.0f)) {
    before_.insert(before_.begin(), kOffset / 4, 55.0f);
    for (const int state : {0, 0, 0, 1, 1, 2, 2}) after_.push_back(address(states_[static_cast<std::size_t>(state)]));
    runs_ = {{address(before_), 0, 5}, {0, 5, 2}};
  }
  [[nodiscard]] StateRows rows() const { return {runs_.data(), after_.data(), kOffset}; }
  [[nodiscard]] std::uint32_t runs() const { return 2; }
  [[nodiscard]] static constexpr std::uint32_t n_rows() { return 7; }
  [[nodiscard]] float before(std::size_t row, std::size_t i) const { return row < 5 ? before_[kOffset / 4 + i] : 0.0f; }
  // The state behind row 2, 4 or 6.
  [[nodiscard]] float after(std::size_t state, std::size_t i) const { return states_[state][kOffset / 4 + i]; }

  static constexpr std::uint64_t kOffset = 64;

 private:
  static std::uint64_t address(const std::vector<float>& at) { return reinterpret_cast<std::uintptr_t>(at.data()); }

  std::vector<float> before_;
  std::vector<std::vector<float>> states_;
  std::vector<std::uint64_t> after_;
  std::vector<StateRun> runs_;
};

}  // namespace

TEST_CASE("four numbers in, four out: a convolution over two rows, and a delta rule") {
  std::vector<float> state(64);
  std::vector<std::uint64_t> pages(2, reinterpret_cast<std::uintptr_t>(state.data()));
  const StateRun run{0, 0, 2};  // two rows, before which the state is zeros
  const StateRows rows{&run, pages.data(), 0};

  const float weight[] = {1, 1, 1, 1,   // of the row before
                          2, 2, 2, 2};  // of the row itself
  std::vector<float> x = {1, 2, 3, 4, 10, 20, 30, 40};
  emulator::launch("convolve_rows", {1, 1}, kStateThreads, 0, ConvolveArgs{rows, weight, nullptr, x.data(), 4, 2, 0, 0});
  CHECK(x == std::vector<float>{2, 4, 6, 8, 21, 42, 63, 84});
  CHECK(std::vector<float>(state.begin(), state.begin() + 4) == std::vector<float>{10, 20, 30, 40});  // the last row, for the next step

  // One head with a key of one number. Row 0 writes its value. Row 1 moves the state half of the way to its own value.
  const float qkv[] = {1, 1, 1, 2, 3, 4, 1, 1, 10, 20, 30, 40}, decays[] = {1, 1}, rates[] = {1, 0.5f};
  std::vector<float> out(8);
  const RecurrenceArgs args{.states = rows, .x = qkv, .decays = decays, .rates = rates, .skip = nullptr, .out = out.data(), .x_stride = 6,
                            .decays_stride = 1, .rates_stride = 1, .heads = 1, .groups = 1, .keys = 1, .values = 4, .first_key = 1,
                            .first_query = 0, .first_value = 2, .order = StateGroups::blocks, .padding = 0};
  emulator::launch("delta_rule", {1, 1, 1}, kStateThreads, 0, args);
  CHECK(out == std::vector<float>{1, 2, 3, 4, 5.5f, 11, 16.5f, 22});
}

TEST_CASE("a convolution sees its own row and those before it, also of the last step") {
  const std::uint32_t width = GENERATE(2u, 4u), columns = 130;
  const Rig rig((width - 1) * columns);
  const std::vector<float> weight = random_floats(width * columns, 1), bias = random_floats(columns, 2),
                           in = random_floats(Rig::n_rows() * columns, 3);
  for (const bool silu : {false, true}) {
    std::vector<float> x = in;
    emulator::launch("convolve_rows", {rig.runs(), 2}, kStateThreads, 0,
                     ConvolveArgs{rig.rows(), weight.data(), silu ? bias.data() : nullptr, x.data(), columns, width, silu ? 1u : 0u, 0});
    std::size_t wrong = 0;
    const auto input = [&](int row, int first, std::uint32_t column) {
      const int back = first - row;  // rows before the run
      if (back <= 0) return in[static_cast<std::size_t>(row) * columns + column];
      return rig.before(static_cast<std::size_t>(first), (width - 1 - static_cast<std::size_t>(back)) * columns + column);
    };
    for (int row = 0; row < static_cast<int>(Rig::n_rows()); ++row) {
      const int first = row < 5 ? 0 : 5;
      for (std::uint32_t column = 0; column < columns; ++column) {
        float sum = silu ? bias[column] : 0.0f;
        for (std::uint32_t k = 0; k < width; ++k) {
          sum = sum + weight[k * columns + column] * input(row - static_cast<int>(width - 1 - k), first, column);
        }
        if (silu) sum = sum / (1.0f + math::exp(-sum));
        wrong += x[static_cast<std::size_t>(row) * columns + column] != sum;
      }
    }
    const int last[] = {2, 4, 6};
    for (std::size_t state = 0; state < 3; ++state) {
      for (std::uint32_t k = 0; k + 1 < width; ++k) {
        for (std::uint32_t column = 0; column < columns; ++column) {
          const int row = last[state] - static_cast<int>(width - 2 - k);
          wrong += rig.after(state, k * columns + column) != input(row, last[state] < 5 ? 0 : 5, column);
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the delta rule and the selective scan, row after row") {
  const bool is_delta = GENERATE(true, false);
  const StateGroups order = GENERATE(StateGroups::blocks, StateGroups::cyclic);
  const std::uint32_t heads = 4, groups = 2, keys = 7, values = 19;
  const std::size_t stripes = backend::stripes_of(values), head_floats = backend::head_state_floats(keys, values);
  const Rig rig(heads * head_floats);
  const std::uint32_t columns = 2 * groups * keys + heads * values;
  const std::vector<float> x = random_floats(Rig::n_rows() * columns, 4), rates = random_floats(Rig::n_rows() * heads, 6),
                           skip = random_floats(heads, 7);
  std::vector<float> decays = random_floats(Rig::n_rows() * heads, 5), out(Rig::n_rows() * heads * values);
  for (float& decay : decays) decay = 1.0f / (1.0f + std::abs(decay));
  const RecurrenceArgs args{.states = rig.rows(), .x = x.data(), .decays = decays.data(), .rates = rates.data(), .skip = skip.data(),
                            .out = out.data(), .x_stride = columns, .decays_stride = heads, .rates_stride = heads, .heads = heads,
                            .groups = groups, .keys = keys, .values = values,
                            .first_key = is_delta ? groups * keys : heads * values,
                            .first_query = is_delta ? 0 : heads * values + groups * keys,
                            .first_value = is_delta ? 2 * groups * keys : 0, .order = order, .padding = 0};
  emulator::launch(is_delta ? "delta_rule" : "scan_rows", {rig.runs(), heads, 1}, kStateThreads, 0, args);

  const auto total = [](const float* sum) { return (sum[0] + sum[2]) + (sum[1] + sum[3]); };
  std::size_t wrong = 0;
  for (std::uint32_t head = 0; head < heads; ++head) {
    const std::uint32_t group = order == StateGroups::cyclic ? head % groups : head / (heads / groups);
    for (std::uint32_t value = 0; value < values; ++value) {
      const std::size_t at = (head * stripes + value / 16) * keys * 16 + value % 16;
      std::vector<float> state(keys);
      for (std::uint32_t row = 0; row < Rig::n_rows(); ++row) {
        if (row == 0 || row == 5) {
          for (std::uint32_t k = 0; k < keys; ++k) state[k] = rig.before(row, at + k * 16);
        }
        const float* own = x.data() + row * columns;
        const float *key = own + args.first_key + group * keys, *query = own + args.first_query + group * keys;
        const float v = own[args.first_value + head * values + value], decay = decays[row * heads + head], rate = rates[row * heads + head];
        float recalled[4] = {}, seen[4] = {};
        for (std::uint32_t k = 0; k < keys; ++k) recalled[k % 4] = std::fma(key[k], state[k], recalled[k % 4]);
        const float added = rate * (is_delta ? v - decay * total(recalled) : v);
        for (std::uint32_t k = 0; k < keys; ++k) {
          state[k] = std::fma(decay, state[k], key[k] * added);
          seen[k % 4] = std::fma(query[k], state[k], seen[k % 4]);
        }
        const float result = is_delta ? total(seen) : total(seen) + skip[head] * v;
        wrong += out[(row * heads + head) * values + value] != result;
        if (row == 2 || row == 4 || row == 6) {
          for (std::uint32_t k = 0; k < keys; ++k) wrong += rig.after(row / 2 - 1, at + k * 16) != state[k];
        }
      }
    }
    // Lanes of the last stripe that have no value stay as they were, decayed: zeros in a state that began as zeros.
    for (std::uint32_t k = 0; k < keys; ++k) wrong += rig.after(2, (head * stripes + 1) * keys * 16 + k * 16 + 3) != 0.0f;
  }
  CHECK(wrong == 0);
}

TEST_CASE("decays, steps and the lengths of q and k before a recurrence") {
  const std::uint32_t rows = 3, heads = 5, groups = 2, keys = 40, columns = 2 * groups * keys + 10;
  const std::vector<float> before = random_floats(rows * columns, 1), steps = random_floats(rows * heads, 2, 20.0f),
                           betas = random_floats(rows * heads, 3), rate = random_floats(heads, 4), bias = random_floats(heads, 5);
  std::vector<float> qkv = before, decays = steps, rates = betas;
  PrepareStateArgs args{qkv.data(), decays.data(), rates.data(), rate.data(), bias.data(), heads, groups, keys, columns, heads, heads};
  emulator::launch("prepare_delta", {rows}, kPrepareThreads, 0, args);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t group = 0; group < 2 * groups; ++group) {
      double squares = 0.0;
      for (std::uint32_t k = 0; k < keys; ++k) squares += std::pow(before[row * columns + group * keys + k], 2.0);
      const double factor = 1.0 / std::sqrt(squares + 1e-6) * (group < groups ? 1.0 / std::sqrt(40.0) : 1.0);
      for (std::uint32_t k = 0; k < keys; ++k) {
        CHECK(qkv[row * columns + group * keys + k] == Approx(before[row * columns + group * keys + k] * factor).epsilon(1e-5));
      }
    }
    for (std::uint32_t c = 2 * groups * keys; c < columns; ++c) CHECK(qkv[row * columns + c] == before[row * columns + c]);
    for (std::uint32_t head = 0; head < heads; ++head) {
      const float step = math::wide::softplus(steps[row * heads + head] + bias[head]);
      CHECK(decays[row * heads + head] == math::exp(rate[head] * step));
      CHECK(rates[row * heads + head] == 1.0f / (1.0f + math::exp(-betas[row * heads + head])));
    }
  }
  std::vector<float> scan_steps = steps, scan_decays(rows * heads);
  args.steps = scan_steps.data();
  args.rates = scan_decays.data();
  emulator::launch("prepare_scan", {rows}, kPrepareThreads, 0, args);
  for (std::uint32_t i = 0; i < rows * heads; ++i) {
    const float step = math::wide::softplus(steps[i] + bias[i % heads]);
    CHECK(scan_steps[i] == step);
    CHECK(scan_decays[i] == math::exp(rate[i % heads] * step));
  }
}

}  // namespace test_cuda_recurrent_kernels
