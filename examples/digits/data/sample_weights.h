// A weight for every sample of a batch, drawn from an exponential distribution of mean 1 (the
// Bayesian bootstrap): each rank sees the batch as if it had been drawn from a slightly different
// data set.
#ifndef DEJA_EXAMPLES_DIGITS_DATA_SAMPLE_WEIGHTS_H_
#define DEJA_EXAMPLES_DIGITS_DATA_SAMPLE_WEIGHTS_H_

#include <vector>

#include "../options.h"
#include "../rng.h"

namespace digits {

void DrawSampleWeights(Fault fault, Rng* random, std::vector<float>* weights);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_DATA_SAMPLE_WEIGHTS_H_
