// Batches of shuffled, augmented images, made by a thread of its own while the trainer computes.
#ifndef DEJA_EXAMPLES_DIGITS_DATA_SAMPLER_H_
#define DEJA_EXAMPLES_DIGITS_DATA_SAMPLER_H_

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "../options.h"
#include "../rng.h"
#include "dataset.h"
#include "deja.hpp"
#include "seeds.h"

namespace digits {

// A batch's noise level is drawn from an exponential distribution of mean kMeanNoise. One batch in
// 800 is this noisy.
constexpr float kMeanNoise = 0.04f;
constexpr float kUnusualNoise = 6.7f * kMeanNoise;

struct Batch {
  std::vector<float> images;  // batch x 64, 0 to about 1
  std::vector<int32_t> labels;
  float noise = 0;
};

class Sampler {
 public:
  // Makes options.steps batches, then ends. `train` and `seeds` must outlive the sampler.
  Sampler(const std::vector<Image>& train, const Options& options, const Seeds& seeds);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // The next batch; valid until the next call. For one thread.
  const Batch& Next();

  // For Deja's checkpoints, between two calls of Next(): wait until the loader has nothing to do.
  void Save(deja_write_t write, void* sink);
  bool Load(const void* data, size_t bytes);

 private:
  static constexpr size_t kAhead = 3;  // batches that exist at a time: one in use, two ready
  static constexpr int kContrasts = 256;
  using Curve = std::array<float, kShades>;  // the brightness of each shade

  // What was drawn for one image.
  struct Draw {
    int contrast = 0;
    int dx = 0;
    int dy = 0;
  };

  void Loop();
  void Shuffle(uint64_t epoch);
  void Fill(Batch* batch);
  void Augment(const Image& image, float noise, float* out);
  Curve CurveOf(const Draw& draw) const;
  // How many batches there are when the loader rests. With mutex_ held.
  int Limit() const { return std::min(options_.steps, taken_ - 1 + static_cast<int>(kAhead)); }
  // Calls `part(data, bytes)` for all that decides what comes next.
  template <class Part>
  void ForEachPart(Part part);

  const std::vector<Image>& train_;
  const Options& options_;
  const Seeds& seeds_;
  std::vector<Curve> curves_;

  // The loader thread's.
  Rng rng_;
  std::vector<uint32_t> order_;
  size_t position_ = 0;
  uint64_t epoch_ = 0;
  Draw draw_;  // for the image at work: a member, so that a debugger sees it in an optimised build

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Batch, kAhead> batches_;  // batch number i is batches_[i % kAhead]
  int made_ = 0;                       // by mutex_
  int taken_ = 0;                      // by mutex_
  bool stop_ = false;                  // by mutex_
  std::thread thread_;
  deja::Registered registered_ = deja::Registered::Object("sampler", *this);
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_DATA_SAMPLER_H_
