#include "heads/joined_source.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "files/sorted_names.hpp"

namespace tessera::detail {

Result<std::shared_ptr<const ModelSource>> JoinedSource::make(std::shared_ptr<const ModelSource> model, std::shared_ptr<const HeadFile> heads) {
  TESSERA_TRY(const std::uint64_t all, model->settings().unsigned_integer(Setting::n_layers));
  TESSERA_TRY(const std::uint64_t further, model->settings().unsigned_integer_or(Setting::n_further_layers, 0));
  const auto n_layers = static_cast<std::uint32_t>(std::min<std::uint64_t>(all - std::min(all, further), UINT32_MAX / 2));
  auto joined = std::make_shared<JoinedSource>();
  joined->model_ = std::move(model);
  joined->heads_ = std::move(heads);
  std::uint32_t parts = 0;
  for (const TensorInfo& tensor : joined->model_->tensors()) {
    const auto layer = layer_of(tensor.name);
    if (further != 0 && layer && *layer >= n_layers) continue;  // a head in the model's own file, which is not loaded
    parts = std::max(parts, tensor.part + 1);
    joined->infos_.push_back(tensor);
    joined->own_.push_back(&tensor);
  }
  for (const HeadTensor& tensor : joined->heads_->tensors) {
    const TensorInfo& own = *joined->heads_->source->find_tensor(tensor.name);  // exists, because the reader has checked it
    joined->names_.push_back(row_of(tensor.role).tensor_name(n_layers + tensor.layer));
    joined->infos_.push_back(own);
    joined->infos_.back().name = joined->names_.back();
    joined->infos_.back().part += parts;
    joined->own_.push_back(&own);
  }
  joined->by_name_ = sorted_indices(joined->infos_, [](const TensorInfo& info) { return info.name; });
  return std::shared_ptr<const ModelSource>(std::move(joined));
}

const TensorInfo* JoinedSource::find_tensor(std::string_view name) const noexcept {
  return find_sorted(infos_, by_name_, name, [](const TensorInfo& info) { return info.name; });
}

Status JoinedSource::read(const TensorInfo& tensor, std::uint64_t offset, std::span<std::byte> out) const noexcept {
  const auto index = static_cast<std::size_t>(&tensor - infos_.data());
  const bool is_of_heads = index >= infos_.size() - names_.size();
  return (is_of_heads ? *heads_->source : *model_).read(*own_[index], offset, out);
}

std::string JoinedSource::called(std::string_view name) const {
  const std::size_t first = infos_.size() - names_.size();
  for (std::size_t i = first; i < infos_.size(); ++i) {
    if (infos_[i].name == name) return fmt::format("{} in {}", own_[i]->name, heads_->place);
  }
  return model_->called(name);
}

std::string JoinedSource::wrong_shape(const TensorInfo& tensor, const std::array<std::uint64_t, 4>& wanted) const {
  const auto index = static_cast<std::size_t>(&tensor - infos_.data());
  const bool is_of_heads = index >= infos_.size() - names_.size();
  return (is_of_heads ? *heads_->source : *model_).wrong_shape(*own_[index], wanted);
}

Result<InputRounding> JoinedSource::input_rounding(const TensorInfo& tensor) const noexcept {
  const auto index = static_cast<std::size_t>(&tensor - infos_.data());
  return index < infos_.size() - names_.size() ? model_->input_rounding(*own_[index]) : InputRounding();
}

std::uint64_t JoinedSource::memory_bytes() const noexcept {
  std::uint64_t bytes = model_->memory_bytes() + heads_->memory_bytes() + sizeof *this + infos_.capacity() * sizeof(TensorInfo) +
                        own_.capacity() * sizeof own_.front() + by_name_.capacity() * sizeof(std::uint32_t);
  for (const std::string& name : names_) bytes += sizeof name + name.capacity();
  return bytes;
}

}  // namespace tessera::detail
