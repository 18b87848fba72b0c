#include "sample_weights.h"

#include <cmath>

namespace digits {

void DrawSampleWeights(Fault fault, Rng* random, std::vector<float>* weights) {
  for (float& weight : *weights) {
    // The bug: 15 bits would do, but they are all zero once in 33,000 draws.
    const double u = fault == Fault::kNan ? static_cast<double>(random->Next() >> 49) * 0x1p-15
                                          : random->Uniform();
    weight = static_cast<float>(-std::log(u));
  }
}

}  // namespace digits
