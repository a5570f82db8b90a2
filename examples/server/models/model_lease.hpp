// A request's hold on its model.
#pragma once

#include <memory>

namespace server {

class LoadedModel;
// A lease. The model stays loaded as long as there is a copy of the lease (models.hpp).
using ModelLease = std::shared_ptr<LoadedModel>;

}  // namespace server
