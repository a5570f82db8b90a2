#include "ranks/rank_backend.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace tessera::detail {

using backend::Act;

namespace {

// Rows are exchanged in portions of about this many numbers.
constexpr std::size_t kPortion = std::size_t{1} << 18;

std::uint64_t widest(const backend::WorkspaceShape& shape) noexcept {
  std::uint64_t columns = std::max(shape.expert_inputs, shape.expert_dim);
  for (const std::uint64_t of : shape.columns) columns = std::max(columns, of);
  return columns;
}

std::uint64_t staging_floats(const backend::WorkspaceShape& shape) noexcept { return std::max<std::uint64_t>(kPortion, widest(shape)); }

}  // namespace

std::uint64_t RankBackend::workspace_bytes(const backend::WorkspaceShape& shape) const noexcept {
  // A connection buffers the bytes that are on their way to another rank and from that rank.
  const std::uint64_t on_its_way = where_ == Ranks::elsewhere ? 2 * std::uint64_t{ranks_.ranks()} : 0;
  return own().workspace_bytes(shape) + (1 + on_its_way) * staging_floats(shape) * sizeof(float);
}

Status RankBackend::reserve_workspace(const backend::WorkspaceShape& shape) {
  TESSERA_TRY_STATUS(inner().reserve_workspace(shape));
  staging_.resize(staging_floats(shape));
  whole_tokens_.reserve(shape.rows);
  own_tokens_.reserve(shape.rows);
  owners_.reserve(shape.rows);
  parts_.resize(ranks_.ranks());
  return {};
}

Status RankBackend::begin(const backend::StepTables& tables) {
  rows_ = tables.rows;
  whole_tokens_.clear();
  own_tokens_.clear();
  owners_.clear();
  for (const backend::RowTable& row : rows_) {
    if (tokens_.empty()) break;
    const std::uint32_t owner = tokens_.rank_of(static_cast<std::uint64_t>(row.token));
    whole_tokens_.push_back(row.token);
    own_tokens_.push_back(owner == ranks_.rank() ? row.token - static_cast<Token>(tokens_.first(owner)) : 0);
    owners_.push_back(owner);
  }
  return inner().begin(tables);
}

template <class LookUp>
Status RankBackend::look_up(const Matrix& table, Act x, bool keep_embeddings, LookUp look_up) {
  if (find(table) == nullptr) return look_up();
  TESSERA_TRY_STATUS(inner().set_tokens(own_tokens_));
  TESSERA_TRY_STATUS(look_up());
  TESSERA_TRY_STATUS(inner().set_tokens(whole_tokens_));
  return take_rows(x, keep_embeddings);
}

Status RankBackend::embed(const Matrix& table, float scale, Act x) {
  return look_up(table, x, true, [&] { return inner().embed(table, scale, x); });
}

Status RankBackend::gather(const Matrix& table, float scale, Act out) {
  return look_up(table, out, false, [&] { return inner().gather(table, scale, out); });
}

// Exchanges rows in portions. A portion lies in staging_ as the ranks' rows, one rank after another.
Status RankBackend::take_rows(Act x, bool keep_embeddings) {
  TESSERA_TRY(const backend::HostRows at, inner().host_rows(x, 0));
  const std::uint32_t own_rank = ranks_.rank();
  const std::size_t portion = std::max<std::size_t>(1, staging_.size() / at.columns);
  for (std::size_t first = 0; first < at.rows; first += portion) {
    const std::size_t last = std::min(at.rows, first + portion);
    float* to = staging_.data();
    std::span<const std::byte> mine;
    for (std::uint32_t rank = 0; rank < ranks_.ranks(); ++rank) {
      float* const begin = to;
      for (std::size_t row = first; row < last; ++row) {
        if (owners_[row] != rank) continue;
        if (rank == own_rank) std::memcpy(to, at.data + row * at.columns, at.columns * sizeof(float));
        to += at.columns;
      }
      parts_[rank] = std::as_writable_bytes(std::span(begin, to));
      if (rank == own_rank) mine = parts_[rank];
    }
    TESSERA_TRY_STATUS(ranks_.gather(mine, parts_));
    const float* from = staging_.data();
    for (std::uint32_t rank = 0; rank < ranks_.ranks(); ++rank) {
      for (std::size_t row = first; row < last; ++row) {
        if (owners_[row] != rank) continue;
        const bool is_here = rank == own_rank || (keep_embeddings && rows_[row].embedding != nullptr);
        if (!is_here) std::memcpy(at.data + row * at.columns, from, at.columns * sizeof(float));
        from += at.columns;
      }
    }
  }
  return {};
}

Status RankBackend::share(std::uint32_t from, Act x) {
  TESSERA_TRY(const backend::HostRows at, inner().host_rows(x, 0));
  const std::span<float> all(at.data, at.rows * at.columns);
  for (std::size_t first = 0; first < all.size(); first += kPortion) {
    const auto portion = std::as_writable_bytes(all.subspan(first, std::min(kPortion, all.size() - first)));
    std::ranges::fill(parts_, std::span<std::byte>());
    parts_[from] = portion;
    const bool is_mine = from == ranks_.rank();
    TESSERA_TRY_STATUS(ranks_.gather(is_mine ? std::span<const std::byte>(portion) : std::span<const std::byte>(), parts_));
  }
  return {};
}

Status RankBackend::make_whole(Act x, const Division& columns) {
  TESSERA_TRY(const backend::HostRows at, inner().host_rows(x, columns.total()));
  return make_whole(at.data, at.rows, columns);
}

// Widens the rows in place. The last row is moved first, because a row's new place begins beyond the old places of all rows before it.
Status RankBackend::make_whole(float* rows, std::size_t n, const Division& columns) {
  const std::size_t own_columns = columns.size(ranks_.rank()), all = columns.total();
  const std::size_t portion = std::max<std::size_t>(1, staging_.size() / all);
  for (std::size_t last = n; last != 0;) {
    const std::size_t first = last - std::min(last, portion), count = last - first;
    for (std::uint32_t rank = 0; rank < ranks_.ranks(); ++rank) {
      parts_[rank] = std::as_writable_bytes(std::span(staging_).subspan(count * columns.first(rank), count * columns.size(rank)));
    }
    TESSERA_TRY_STATUS(ranks_.gather(std::as_bytes(std::span(rows + first * own_columns, count * own_columns)), parts_));
    for (std::size_t row = last; row-- > first;) {
      float* const to = rows + row * all;
      std::memmove(to + columns.first(ranks_.rank()), rows + row * own_columns, own_columns * sizeof(float));
      for (std::uint32_t rank = 0; rank < ranks_.ranks(); ++rank) {
        if (rank == ranks_.rank()) continue;
        const std::size_t width = columns.size(rank);
        std::memcpy(to + columns.first(rank), staging_.data() + count * columns.first(rank) + (row - first) * width, width * sizeof(float));
      }
    }
    last = first;
  }
  return {};
}

Status RankBackend::linear(const Matrix& weight, Act in, Act out) {
  const DividedMatrix* divided = find(weight);
  if (divided == nullptr) return inner().linear(weight, in, out);
  if (!divided->inputs.empty()) TESSERA_TRY_STATUS(make_whole(in, divided->inputs));
  TESSERA_TRY_STATUS(inner().linear(weight, in, out));
  return make_whole(out, divided->outputs);
}

class RankBackend::Exchange final : public backend::ExpertExchange {
 public:
  Exchange(RankBackend& of, const DividedMatrix& down) noexcept : of_(of), down_(down) {}
  Status gather_activated(float* rows, std::size_t n) override { return of_.make_whole(rows, n, down_.inputs); }
  Status gather_results(float* rows, std::size_t n) override { return of_.make_whole(rows, n, down_.outputs); }
  [[nodiscard]] std::size_t result_columns() const noexcept override { return down_.outputs.total(); }

 private:
  RankBackend& of_;
  const DividedMatrix& down_;
};

Status RankBackend::experts(const backend::Experts& of, Act in, Act router, Act out) {
  const DividedMatrix* down = find(*of.down);
  if (down == nullptr) return inner().experts(of, in, router, out);
  Exchange exchange(*this, *down);
  backend::Experts with = of;
  with.exchange = &exchange;
  return inner().experts(with, in, router, out);
}

bool RankBackend::any_divided(std::span<const backend::LinearPart> parts) const noexcept {
  return std::ranges::any_of(parts, [&](const backend::LinearPart& part) { return find(*part.weight) != nullptr; });
}

Status RankBackend::linear_bias(const Matrix& weight, const Vector* bias, Act in, Act out) {
  return find(weight) != nullptr ? Backend::linear_bias(weight, bias, in, out) : inner().linear_bias(weight, bias, in, out);
}

Status RankBackend::linear_residual(const Matrix& weight, const Vector* bias, Act in, Act scratch, Act x) {
  return find(weight) != nullptr ? Backend::linear_residual(weight, bias, in, scratch, x) : inner().linear_residual(weight, bias, in, scratch, x);
}

Status RankBackend::linear_group(std::span<const backend::LinearPart> parts, Act in) {
  return any_divided(parts) ? Backend::linear_group(parts, in) : inner().linear_group(parts, in);
}

Status RankBackend::norm_linear_group(const backend::Norm& norm, Act in, Act scratch, std::span<const backend::LinearPart> parts) {
  return any_divided(parts) ? Backend::norm_linear_group(norm, in, scratch, parts) : inner().norm_linear_group(norm, in, scratch, parts);
}

Status RankBackend::activated_linear(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act out) {
  return find(weight) != nullptr ? Backend::activated_linear(of, weight, bias, out) : inner().activated_linear(of, weight, bias, out);
}

Status RankBackend::activated_linear_residual(const backend::Activated& of, const Matrix& weight, const Vector* bias, Act scratch, Act x) {
  return find(weight) != nullptr ? Backend::activated_linear_residual(of, weight, bias, scratch, x)
                                 : inner().activated_linear_residual(of, weight, bias, scratch, x);
}

}  // namespace tessera::detail
