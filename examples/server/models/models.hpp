// The models of this server: knows the models, which of them are loaded, and which requests use them. Each request has a lease on its
// model, and a model with leases is never unloaded. All loaded models together keep within one budget of memory.
//
// This object only decides. A ModelLoader asks next() for a task, does the task on the loader's thread, and reports how the task ended.
// Rules, in this order:
// - A model that nobody has used for its keep_alive is unloaded.
// - Models are loaded in the order in which requests asked for them. If there is no room for the next model, loaded models have to leave:
//   first the models without requests, the least recently used one first. A model with requests leaves when these requests have ended. New
//   requests for a model that has to leave wait until the other model has been loaded, so that both models get their turn.
// - A model stays loaded at least as long as its loading took, so that at most about half of the time goes into loading.
// - A request that has waited for `load_time` is refused, with a time after which to try again. The load of its model goes on. A load is
//   given up only if all clients that waited for the model have left.
// - A model that could not be loaded is not read again for some time, or until one of its files is changed (failed_load.hpp).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/extend/files/model_source.hpp>

#include "adapters/adapter_names.hpp"
#include "api_error.hpp"
#include "models/failed_load.hpp"
#include "models/memory_need.hpp"
#include "models/model_card.hpp"
#include "models/model_figures.hpp"
#include "models/model_lease.hpp"
#include "models/model_names.hpp"
#include "models/running_load.hpp"
#include "models/wait_line.hpp"

namespace server {

enum class ModelState { unloaded, loading, loaded, unloading, failed };
[[nodiscard]] std::string_view to_string(ModelState state) noexcept;

// A model that the command line names, with the facts that the server read from its file at the start.
struct ConfiguredModel {
  std::string id{};
  std::filesystem::path path{};
  std::shared_ptr<const tessera::ModelSource> embedded{};  // the model inside the program, which has no path
  bool is_pinned = false;  // loaded at the start, and never unloaded
  ModelCard card{};
  MemoryNeed need{};
  std::string fault{};     // a sentence, if the file could not be read at the start
};

struct ModelsOptions {
  std::uint64_t memory = ~std::uint64_t{0};    // bytes of all loaded models together
  double keep_alive = -1.0;                    // seconds without a request after which a model is unloaded; below 0: never
  std::chrono::seconds load_time{300};         // a request waits at most this long for its model
  std::size_t max_waiting = 1024;              // requests that may wait for models
  std::vector<ConfiguredAdapter> adapters{};
  bool changes_adapters = false;               // requests may load and unload adapters
};

// A model as lists show it.
struct ModelView {
  std::shared_ptr<const ModelCard> card{};
  ModelState state = ModelState::unloaded;
  bool is_pinned = false;
  std::string fault{};        // a sentence that says why the last load failed; empty: it did not fail
  std::uint64_t loads = 0;    // how often the model was loaded
  std::size_t requests = 0;   // leases
  std::size_t waiting = 0;    // requests that wait for the model
  double seconds_left = -1.0; // seconds until the loaded model is unloaded, if no request comes; below 0: no limit
};

class Models {
 public:
  Models(std::vector<ConfiguredModel> models, ModelsOptions options, ModelNames::Options names = {});
  ~Models();
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;

  // --- For requests, on any thread.

  [[nodiscard]] const ModelNames& names() const noexcept { return names_; }
  [[nodiscard]] AdapterNames& adapters() const noexcept { return adapters_; }
  [[nodiscard]] bool may_change_adapters() const noexcept { return options_.changes_adapters; }
  // Gives a request access to a model. If the model is loaded, returns a lease. If not, returns nullptr, and `wait` gets the lease when the
  // model is loaded. `keep_alive`: from now on the model is unloaded after this many seconds without requests; below 0: never; nullopt: the
  // earlier value stays. Throws ApiError if the model can never fit, if it could not be loaded a short time ago, if the server
  // ends, or if too many requests wait.
  [[nodiscard]] ModelLease acquire(std::size_t model, std::optional<double> keep_alive, ModelWait wait);
  // Makes next() look soon for waiting requests whose clients have left, and drop them.
  void look() noexcept;

  // --- For lists and figures, on any thread.

  // Returns a lease for reading a model's figures, which does not count as use of the model; nullptr if the model is not loaded.
  [[nodiscard]] ModelLease hold(std::size_t model) const;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] ModelView view(std::size_t model) const;
  [[nodiscard]] std::vector<ModelView> views() const;
  [[nodiscard]] std::vector<ModelFigures> figures() const;
  [[nodiscard]] std::uint64_t memory() const noexcept { return options_.memory; }
  [[nodiscard]] bool is_pinned(std::size_t model) const noexcept { return entries_[model]->configured.is_pinned; }
  void count_answer(std::size_t model, std::uint64_t stopped, std::uint64_t cut);

  // --- For the end of the server.
  // Refuses waiting requests and all later ones. Requests that have a lease go on.
  void drain();
  [[nodiscard]] bool idle() const;  // no scheduler has a request

  // --- For the loader.
  struct Task {
    enum class Kind { load, unload, end } kind = Kind::end;
    std::size_t model = 0;
    std::shared_ptr<LoadedModel> unloaded{};  // the model to destroy: the last reference
  };
  // Waits for the next task. After a load the caller must call loaded(), failed() or given_up(); after an unload gone().
  [[nodiscard]] Task next();
  [[nodiscard]] const ConfiguredModel& configured(std::size_t model) const noexcept { return entries_[model]->configured; }
  // The loader calls this often while it loads a model, and gives up the load if false is returned. Returns true if a request waits for the
  // model or was told to come again, or if the model is pinned. Exception: returns false after drain() or end(). `share`: how much of the
  // model is loaded, from 0 to 1.
  [[nodiscard]] bool goes_on(std::size_t model, double share);
  // Reports that the loader begins a load on its own, without a task of next().
  void begin(std::size_t model);
  // Reserves in the budget the memory that a model needs, before it is loaded. The file may have changed since the start of the server, so
  // `need` and `card` are read from it anew and replace the old ones. Throws Failure if the model does not fit any more.
  void book(std::size_t model, const MemoryNeed& need, ModelCard card);
  void loaded(std::size_t model, std::shared_ptr<LoadedModel> made, double seconds);
  // Reports that a load failed. Refuses the waiting requests with the error, and later requests as FailedLoad says.
  void failed(std::size_t model, FailedLoad failure);
  // Reports that a load was given up, because no request waits for the model any more.
  void given_up(std::size_t model);
  void gone(std::size_t model);
  // Makes next() return Task::Kind::end, and goes_on() return false.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Calls = WaitLine::Calls;  // functions to call when the mutex is free
  enum class Use { request, look };
  struct Hold;
  struct Entry {
    ConfiguredModel configured;
    std::shared_ptr<const ModelCard> card;
    ModelState state = ModelState::unloaded;
    std::uint64_t bytes = 0;                 // planned memory
    std::shared_ptr<LoadedModel> model{};    // while loaded
    std::size_t leases = 0;                  // leases of requests
    std::size_t looks = 0;                   // leases of lists and figures
    bool is_leaving = false;                 // the model has to make room, and gets no new requests
    bool is_queued = false;                  // in queue_
    double keep_alive = -1.0;
    Time last_use{}, stays_until{};
    WaitLine waiting{};
    std::string fault{};
    std::optional<FailedLoad> failure{};     // the last load, if it failed
    RunningLoad load{};                      // while loading
    std::uint64_t loads = 0;
    ModelFigures past{};                     // figures of earlier loads, and counts of answers
  };

  // These need the mutex.
  [[nodiscard]] ModelLease lease(Entry& entry, Use use) const;
  [[nodiscard]] std::optional<Task> plan(Calls& calls);
  void drop_waiting(Calls& calls);  // drops requests whose clients have left, and requests that have waited too long
  [[nodiscard]] std::optional<Task> make_room(const Entry& wanted);
  [[nodiscard]] Task unload(std::size_t model);
  void grant(Entry& entry, Calls& calls);
  [[nodiscard]] Time expiry(const Entry& entry) const;
  [[nodiscard]] std::uint64_t used() const;     // bytes
  [[nodiscard]] std::size_t waiting() const;    // requests that wait for models
  [[nodiscard]] std::uint64_t most_for(const Entry& entry) const;
  [[nodiscard]] ApiError too_late(const Entry& entry) const;
  void begin_load(Entry& entry);
  // Ends a load that did not succeed: sets the model's state, and returns its entry. Returns nullptr, and changes nothing, if loaded() was
  // called already and the error came after this call.
  [[nodiscard]] Entry* end_load(std::size_t model, ModelState state);
  // Throws the error of the last load if the model is not to be read again yet. Must be called without the mutex, because it reads the
  // state of files.
  void check_files(Entry& entry);
  [[nodiscard]] ModelView view_of(const Entry& entry) const;
  void change() const noexcept;
  // Must be called without the mutex.
  void release(Entry& entry, Use use) const noexcept;
  // Returns a lease of each loaded model, so that the model's figures can be read without the mutex.
  [[nodiscard]] std::vector<std::pair<std::size_t, ModelLease>> look_at_loaded() const;

  ModelsOptions options_;
  ModelNames names_;
  mutable AdapterNames adapters_;  // guards itself
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::uint64_t changes_ = 0;      // number of changes that next() should look at
  Time wake_{};                            // the time at which next() has to look again
  std::vector<std::unique_ptr<Entry>> entries_;
  std::deque<std::size_t> queue_;          // models that requests wait for, because they are not loaded or have to leave
  bool is_draining_ = false, is_ending_ = false;
};

}  // namespace server
