// A host with its own Eigen, at its own instruction set, beside us: both work, and neither's code ends in the other's.
#include <algorithm>
#include <cmath>

#include <Eigen/Core>

#include <tessera/extend/files/byte_source.hpp>
#include <tessera/version.hpp>

int main() {
  Eigen::MatrixXf a = Eigen::MatrixXf::Random(37, 53);
  Eigen::MatrixXf b = Eigen::MatrixXf::Random(53, 41);
  const Eigen::MatrixXf product = a * b;
  const bool opened = tessera::open_file("/nonexistent/model.gguf").has_value();

  float worst = 0;
  for (Eigen::Index row = 0; row < a.rows(); ++row) {
    for (Eigen::Index column = 0; column < b.cols(); ++column) {
      float sum = 0;
      for (Eigen::Index k = 0; k < a.cols(); ++k) sum += a(row, k) * b(k, column);
      worst = std::max(worst, std::abs(sum - product(row, column)));
    }
  }
  return !opened && !tessera::version().empty() && worst < 1e-4f ? 0 : 1;
}
