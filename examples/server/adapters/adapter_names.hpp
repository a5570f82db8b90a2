// The list of this server's adapters (LoRA), each with its model and the number of requests that use it. Requests name an adapter in place
// of a model. AdapterShelf, which each loaded model has, loads the adapters.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace server {

struct ConfiguredAdapter {
  std::string name{};
  std::filesystem::path path{};
  std::size_t model = 0;  // index of the model to which it belongs
};

// An adapter that a request uses. The request counts as a user of the adapter as long as `use` lives.
struct NamedAdapter {
  ConfiguredAdapter adapter{};
  double scale = 1.0;
  std::shared_ptr<const void> use{};
};

// Any thread may call.
class AdapterNames {
 public:
  struct View {
    ConfiguredAdapter adapter;
    std::size_t users = 0;  // requests that use the adapter now
  };

  explicit AdapterNames(std::vector<ConfiguredAdapter> adapters);

  // Returns the adapter with this name, and counts a user; nullopt if there is no such adapter.
  [[nodiscard]] std::optional<NamedAdapter> find(std::string_view name) const;
  // Returns the adapter with this number in views().
  [[nodiscard]] std::optional<NamedAdapter> at(std::size_t number) const;
  [[nodiscard]] std::vector<View> views() const;

  // Adds an adapter. Error: ApiError of status 400, there is an adapter with this name already.
  void add(ConfiguredAdapter adapter);
  // Removes an adapter and returns it. Requests that use the adapter go on. Error: ApiError of status 404, there is no adapter with this name.
  ConfiguredAdapter remove(std::string_view name);

 private:
  struct Entry {
    ConfiguredAdapter adapter;
    std::shared_ptr<const int> users = std::make_shared<const int>(0);  // each user has a copy
  };
  [[nodiscard]] static NamedAdapter use(const Entry& entry);

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace server
