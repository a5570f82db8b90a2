#include "models/models.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "failure.hpp"
#include "models/loaded_model.hpp"
#include "room.hpp"

namespace server {

namespace {

constexpr std::chrono::hours kLongest{1000};  // stands for "for ever", because a sum with the largest time would overflow

ApiError ends_error() {
  ApiError error(503, "The server is shutting down.", {}, "shutting_down");
  error.retry_after = 1.0;
  return error;
}

std::vector<std::string> ids_of(const std::vector<ConfiguredModel>& models) {
  std::vector<std::string> ids;
  for (const ConfiguredModel& model : models) ids.push_back(model.id);
  return ids;
}

}  // namespace

// Ends a lease when its last copy goes.
struct Models::Hold {
  const Models* models;
  Use use;
  Entry* entry = nullptr;
  Hold(const Models* by, Use what) : models(by), use(what) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (entry != nullptr) models->release(*entry, use);
  }
};

std::string_view to_string(ModelState state) noexcept {
  switch (state) {
    case ModelState::unloaded: return "unloaded";
    case ModelState::loading: return "loading";
    case ModelState::loaded: return "loaded";
    case ModelState::unloading: return "unloading";
    case ModelState::failed: return "failed";
  }
  return {};
}

Models::Models(std::vector<ConfiguredModel> models, ModelsOptions options, ModelNames::Options names) : options_(options), names_(ids_of(models), names), adapters_(options.adapters) {
  for (ConfiguredModel& model : models) {
    auto entry = std::make_unique<Entry>();
    entry->card = std::make_shared<const ModelCard>(model.card);
    entry->bytes = model.need.bytes();
    entry->keep_alive = options.keep_alive;
    entry->fault = model.fault;
    entry->state = model.fault.empty() ? ModelState::unloaded : ModelState::failed;
    entry->configured = std::move(model);
    entry->past.id = entry->configured.id;
    entries_.push_back(std::move(entry));
  }
}

Models::~Models() = default;

// --- Requests.

ModelLease Models::acquire(std::size_t model, std::optional<double> keep_alive, ModelWait wait) {
  Entry& entry = *entries_[model];
  check_files(entry);
  const std::lock_guard lock(mutex_);
  if (is_draining_) throw ends_error();
  if (entry.state == ModelState::loaded && !entry.is_leaving) {
    if (keep_alive) entry.keep_alive = *keep_alive;
    return lease(entry, Use::request);
  }
  if (entry.bytes > most_for(entry)) {
    throw ApiError(400, fmt::format("The model \"{}\" takes {}, and this server has {} for it: start it with more --memory, or with a smaller --ctx or --kv-budget.",
                                    entry.configured.id, in_units(entry.bytes), in_units(most_for(entry))), "model", "model_does_not_fit");
  }
  if (waiting() >= options_.max_waiting) {
    ApiError error(429, fmt::format("{} requests wait for models to be loaded: try again later.", waiting()), {}, "queue_full");
    error.retry_after = 5.0;
    throw error;
  }
  entry.waiting.add(std::move(wait), keep_alive, Clock::now() + options_.load_time);
  if (!std::exchange(entry.is_queued, true)) queue_.push_back(model);
  change();
  return nullptr;
}

void Models::check_files(Entry& entry) {
  {
    const std::lock_guard lock(mutex_);
    if (!entry.failure || entry.state != ModelState::failed) return;
  }
  const FileState present = file_state(entry.configured.path);
  const std::lock_guard lock(mutex_);
  if (!entry.failure || entry.state != ModelState::failed) return;
  if (const auto refusal = entry.failure->answer(present, Clock::now())) throw ApiError(*refusal);
  entry.failure.reset();
}

void Models::look() noexcept {
  const std::lock_guard lock(mutex_);
  if (waiting() > 0) change();
}

ModelLease Models::lease(Entry& entry, Use use) const {
  auto hold = std::make_shared<Hold>(this, use);
  hold->entry = &entry;
  ++(use == Use::request ? entry.leases : entry.looks);
  LoadedModel* const model = entry.model.get();
  return {std::move(hold), model};
}

void Models::release(Entry& entry, Use use) const noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t& holds = use == Use::request ? entry.leases : entry.looks;
  if (use == Use::request) entry.last_use = Clock::now();
  if (--holds == 0) change();
}

void Models::change() const noexcept {
  ++changes_;
  changed_.notify_all();
}

// --- The next task.

Models::Task Models::next() {
  Calls calls;  // must be destroyed without the mutex: a call may hold a lease, and the end of a lease locks the mutex
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::uint64_t seen = changes_;
    const std::optional<Task> task = plan(calls);
    if (!calls.empty() || task) {
      lock.unlock();
      for (const auto& call : calls) call();
      calls.clear();
      if (task) return *task;
      lock.lock();
      continue;
    }
    changed_.wait_until(lock, wake_, [&] { return changes_ != seen; });
  }
}

std::optional<Models::Task> Models::plan(Calls& calls) {
  const Time now = Clock::now();
  wake_ = now + kLongest;
  for (const auto& entry : entries_) entry->is_leaving = false;
  drop_waiting(calls);
  if (is_ending_) return Task{};
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = *entries_[i];
    if (entry.state != ModelState::loaded || entry.leases != 0 || entry.looks != 0 || !entry.waiting.empty()) continue;
    if (expiry(entry) <= now) return unload(i);
    wake_ = std::min(wake_, expiry(entry));
  }
  while (!queue_.empty()) {
    const std::size_t first = queue_.front();
    Entry& entry = *entries_[first];
    const bool is_wanted = !entry.waiting.empty(), is_loaded = entry.state == ModelState::loaded;
    if (is_wanted && !is_loaded && used() + entry.bytes > options_.memory) {
      if (auto task = make_room(entry)) return task;
      break;
    }
    if (is_wanted && is_loaded) grant(entry, calls);
    queue_.pop_front();
    entry.is_queued = false;
    if (!is_wanted || is_loaded) continue;
    begin_load(entry);
    return Task{.kind = Task::Kind::load, .model = first};
  }
  for (const auto& entry : entries_) {
    if (entry->state == ModelState::loaded && !entry->is_leaving && !entry->waiting.empty()) grant(*entry, calls);
  }
  return std::nullopt;
}

void Models::drop_waiting(Calls& calls) {
  for (const auto& entry : entries_) {
    const auto late = [&] {
      entry->load.is_promised = entry->state == ModelState::loading;
      return too_late(*entry);
    };
    const auto next = entry->waiting.drop(Clock::now(), late, calls);
    if (next) wake_ = std::min(wake_, *next);
  }
}

// Chooses the models that have to leave, and returns the task to unload one of them. Returns nullopt if each of them still has a lease, or
// if too few models may leave yet.
std::optional<Models::Task> Models::make_room(const Entry& wanted) {
  std::vector<Resident> residents;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& each = *entries_[i];
    if (each.state != ModelState::loaded || each.configured.is_pinned) continue;
    residents.push_back({.model = i, .bytes = each.bytes, .is_busy = each.leases > 0, .last_use = each.last_use, .stays_until = each.stays_until});
  }
  const Leaving leaving = choose_leaving(std::move(residents), used() + wanted.bytes - options_.memory, Clock::now());
  if (leaving.look_again) wake_ = std::min(wake_, *leaving.look_again);
  for (const std::size_t i : leaving.models) entries_[i]->is_leaving = true;
  const auto free = std::ranges::find_if(leaving.models, [&](std::size_t i) { return entries_[i]->leases == 0 && entries_[i]->looks == 0; });
  return free == leaving.models.end() ? std::nullopt : std::optional(unload(*free));
}

Models::Task Models::unload(std::size_t model) {
  Entry& entry = *entries_[model];
  add_figures(entry.past, *entry.model);
  entry.past.kv_used = entry.past.kv_total = 0;
  entry.past.scheduler.running = entry.past.scheduler.waiting = 0;
  entry.state = ModelState::unloading;
  entry.keep_alive = options_.keep_alive;
  return {.kind = Task::Kind::unload, .model = model, .unloaded = std::move(entry.model)};
}

void Models::grant(Entry& entry, Calls& calls) {
  const auto keep_alive = entry.waiting.grant([&] { return lease(entry, Use::request); }, calls);
  if (keep_alive) entry.keep_alive = *keep_alive;
}

Models::Time Models::expiry(const Entry& entry) const {
  using std::chrono::duration;
  if (entry.configured.is_pinned || entry.keep_alive < 0.0) return Time::max();
  const double longest = duration<double>(kLongest).count();
  return entry.last_use + std::chrono::duration_cast<Clock::duration>(duration<double>(std::min(entry.keep_alive, longest)));
}

std::uint64_t Models::used() const {
  std::uint64_t bytes = 0;
  for (const auto& entry : entries_) bytes += entry->state == ModelState::unloaded || entry->state == ModelState::failed ? 0 : entry->bytes;
  return bytes;
}

std::size_t Models::waiting() const {
  std::size_t count = 0;
  for (const auto& entry : entries_) count += entry->waiting.size();
  return count;
}

// Returns the most bytes that a model may take: the whole memory without the memory of the other pinned models.
std::uint64_t Models::most_for(const Entry& entry) const {
  std::uint64_t bytes = options_.memory;
  for (const auto& each : entries_) {
    if (each.get() != &entry && each->configured.is_pinned) bytes -= std::min(bytes, each->bytes);
  }
  return bytes;
}

ApiError Models::too_late(const Entry& entry) const {
  std::string why;
  double again = 10.0;
  if (entry.state == ModelState::loading) {
    why = entry.load.words();
    again = entry.load.seconds_left(Clock::now());
  } else {
    for (const auto& each : entries_) {
      if (each.get() == &entry || (each->state != ModelState::loaded && each->state != ModelState::loading)) continue;
      why += fmt::format("{}\"{}\" takes {}", why.empty() ? "" : ", ", each->configured.id, in_units(each->bytes));
      if (each->state == ModelState::loading) why += " and is being loaded";
      else if (each->leases > 0) why += fmt::format(" and answers {} request{}", each->leases, each->leases == 1 ? "" : "s");
    }
    why = fmt::format("it takes {} of the {} of this server's models{}{}", in_units(entry.bytes), in_units(options_.memory), why.empty() ? "" : ", of which ", why);
  }
  ApiError error(503, fmt::format("The model \"{}\" was not ready within {} s: {}. Try again later.", entry.configured.id, options_.load_time.count(), why), {}, "model_not_ready");
  error.retry_after = again;
  return error;
}

// --- Reports of the loader.

bool Models::goes_on(std::size_t model, double share) {
  Calls calls;
  bool goes_on = false;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = *entries_[model];
    entry.load.share = share;
    drop_waiting(calls);
    goes_on = !is_ending_ && !is_draining_ && (!entry.waiting.empty() || entry.load.is_promised || entry.configured.is_pinned);
  }
  for (const auto& call : calls) call();
  return goes_on;
}

void Models::begin(std::size_t model) {
  const std::lock_guard lock(mutex_);
  begin_load(*entries_[model]);
}

void Models::begin_load(Entry& entry) {
  entry.state = ModelState::loading;
  entry.load = {.began = Clock::now()};
}

void Models::book(std::size_t model, const MemoryNeed& need, ModelCard card) {
  const std::lock_guard lock(mutex_);
  Entry& entry = *entries_[model];
  entry.bytes = need.bytes();
  card.bytes = entry.bytes;
  if (entry.card->created != 0) card.created = entry.card->created;
  card.fills_in = entry.card->fills_in;
  entry.card = std::make_shared<const ModelCard>(std::move(card));
  if (used() <= options_.memory) return;
  throw Failure(tessera::ErrorCode::over_budget, fmt::format("the model takes {} now, more than there is room for: send the request again, or start the server with more --memory", in_units(entry.bytes)));
}

void Models::loaded(std::size_t model, std::shared_ptr<LoadedModel> made, double seconds) {
  using std::chrono::duration;
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = *entries_[model];
    auto card = std::make_shared<ModelCard>(*entry.card);
    refresh_card(*card, made->model());
    entry.card = std::move(card);
    entry.model = std::move(made);
    entry.state = ModelState::loaded;
    entry.fault.clear();
    entry.failure.reset();
    entry.last_use = Clock::now();
    entry.stays_until = entry.last_use + std::chrono::duration_cast<Clock::duration>(duration<double>(seconds));
    ++entry.loads;
    if (is_draining_) entry.model->scheduler().drain();
    grant(entry, calls);
    change();
  }
  for (const auto& call : calls) call();
}

Models::Entry* Models::end_load(std::size_t model, ModelState state) {
  Entry& entry = *entries_[model];
  if (entry.state != ModelState::loading) return nullptr;
  entry.state = state;
  change();
  return &entry;
}

void Models::failed(std::size_t model, FailedLoad failure) {
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = end_load(model, ModelState::failed);
    if (entry == nullptr) return;
    entry->fault = failure.error.what();
    ApiError error = failure.error;
    error.retry_after = std::max(std::chrono::duration<double>(failure.again - Clock::now()).count(), 1.0);
    entry->waiting.refuse(error, calls);
    entry->failure = std::move(failure);
  }
  for (const auto& call : calls) call();
}

void Models::given_up(std::size_t model) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = end_load(model, ModelState::unloaded);
  if (entry == nullptr) return;
  entry->fault.clear();
  if (!entry->waiting.empty() && !std::exchange(entry->is_queued, true)) queue_.push_back(model);  // a new request
}

void Models::gone(std::size_t model) {
  const std::lock_guard lock(mutex_);
  entries_[model]->state = ModelState::unloaded;
  change();
}

// --- Lists, figures, the end.

ModelView Models::view_of(const Entry& entry) const {
  ModelView view{.card = entry.card, .state = entry.state, .is_pinned = entry.configured.is_pinned, .fault = entry.fault, .loads = entry.loads,
                 .requests = entry.leases, .waiting = entry.waiting.size()};
  if (entry.state != ModelState::loaded || expiry(entry) == Time::max()) return view;
  const Time end = entry.leases > 0 ? expiry(entry) + (Clock::now() - entry.last_use) : expiry(entry);
  view.seconds_left = std::max(std::chrono::duration<double>(end - Clock::now()).count(), 0.0);
  return view;
}

ModelView Models::view(std::size_t model) const {
  const std::lock_guard lock(mutex_);
  return view_of(*entries_[model]);
}

std::vector<ModelView> Models::views() const {
  const std::lock_guard lock(mutex_);
  std::vector<ModelView> views;
  for (const auto& entry : entries_) views.push_back(view_of(*entry));
  return views;
}

ModelLease Models::hold(std::size_t model) const {
  const std::lock_guard lock(mutex_);
  return entries_[model]->state == ModelState::loaded ? lease(*entries_[model], Use::look) : nullptr;
}

std::vector<std::pair<std::size_t, ModelLease>> Models::look_at_loaded() const {
  std::vector<std::pair<std::size_t, ModelLease>> held;
  const std::lock_guard lock(mutex_);
  held.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i]->state == ModelState::loaded) held.emplace_back(i, lease(*entries_[i], Use::look));
  }
  return held;
}

std::vector<ModelFigures> Models::figures() const {
  const auto held = look_at_loaded();
  std::vector<ModelFigures> figures;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : entries_) {
      figures.push_back(entry->past);
      figures.back().loads = entry->loads;
    }
    for (const auto& [model, lease] : held) {
      figures[model].is_loaded = true;
      figures[model].bytes = entries_[model]->bytes;
    }
  }
  for (const auto& [model, lease] : held) add_figures(figures[model], *lease);
  return figures;
}

void Models::count_answer(std::size_t model, std::uint64_t stopped, std::uint64_t cut) {
  const std::lock_guard lock(mutex_);
  entries_[model]->past.stopped += stopped;
  entries_[model]->past.cut += cut;
}

void Models::drain() {
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    is_draining_ = true;
    for (const auto& entry : entries_) entry->waiting.refuse(ends_error(), calls);
    change();
  }
  for (const auto& call : calls) call();
  for (const auto& [model, lease] : look_at_loaded()) lease->scheduler().drain();
}

bool Models::idle() const {
  return std::ranges::all_of(look_at_loaded(), [](const auto& each) { return each.second->scheduler().idle(); });
}

void Models::end() {
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
  change();
}

}  // namespace server
