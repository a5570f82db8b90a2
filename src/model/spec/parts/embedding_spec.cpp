#include "model/spec/parts/embedding_spec.hpp"

#include <array>

#include "core/printable.hpp"

namespace tessera::detail {

namespace {

// Returns the number of rows of a role's matrix; 0 if the file does not have the matrix. A file may leave out a last dimension of 1.
Result<std::uint32_t> rows_of(const SettingReader& from, Role role) {
  const std::string name = row_of(role).tensor_name();
  const TensorInfo* tensor = from.source.find_tensor(name);
  if (tensor == nullptr || from.table.tensors[role] == Presence::absent) return std::uint32_t{0};
  const std::uint64_t rows = tensor->dims[1];
  if (rows != 0 && rows <= SettingReader::kMostCount) return static_cast<std::uint32_t>(rows);
  return error_at(ErrorCode::corrupt_file, fmt::format("tensor {} (offset {})", printable(from.source.called(name)), tensor->offset),
                  "it has {} rows; expected 1 to {}", rows, SettingReader::kMostCount);
}

// Refuses a file that has the tensor `has` but lacks the tensor `needs`, because the first cannot be used without the second.
Status check_pair(const SettingReader& from, Role has, Role needs) {
  if (from.table.tensors[has] == Presence::absent || !from.has_tensor(has) || from.has_tensor(needs)) return {};
  return error_at(ErrorCode::corrupt_file, fmt::format("tensor {}", from.called(needs)), "the file has {} and lacks this tensor, which goes with it", from.called(has));
}

}  // namespace

Status read_embedding(const SettingReader& from, ModelSpec& spec) {
  spec.sight = from.table.encodes ? Sight::both_sides : Sight::back;
  spec.has_logits = !from.table.encodes;
  spec.head_activation = from.table.head_activation;
  TESSERA_TRY_STATUS(check_pair(from, Role::embd_inner, Role::embd_outer));
  TESSERA_TRY_STATUS(check_pair(from, Role::embd_outer, Role::embd_inner));
  for (const Role part : {Role::head_in, Role::head_in_bias, Role::head_norm, Role::head_norm_bias, Role::head_out_bias}) {
    TESSERA_TRY_STATUS(check_pair(from, part, Role::head_out));
  }
  TESSERA_TRY(spec.n_segments, rows_of(from, Role::segment_embd));
  TESSERA_TRY(spec.embedding_inner, rows_of(from, Role::embd_inner));
  TESSERA_TRY(spec.embedding_dim, rows_of(from, Role::embd_outer));
  TESSERA_TRY(spec.n_scores, rows_of(from, Role::head_out));
  spec.pooling = from.table.encodes ? from.table.pooling : Pooling::mean;
  if (!from.settings.has(Setting::pooling)) return {};
  TESSERA_TRY(const std::uint64_t pooling, from.settings.unsigned_integer(Setting::pooling));
  // The index is GGUF's number of the pooling.
  constexpr std::array kPoolings{Pooling::none, Pooling::mean, Pooling::cls, Pooling::last, Pooling::rank};
  if (pooling >= kPoolings.size()) return from.unsupported(Setting::pooling, "there is no pooling {}; expected 0 to {}", pooling, kPoolings.size() - 1);
  spec.pooling = kPoolings[pooling];
  if (spec.pooling != Pooling::rank || spec.n_scores != 0) return {};
  if (from.table.encodes) return from.unsupported(Setting::pooling, "a model that ranks, and the file has no {}, which computes the scores", from.called(Role::head_out));
  spec.pooling = Pooling::last;  // a decoder that ranks by logits (Qwen3-Reranker)
  return {};
}

}  // namespace tessera::detail
