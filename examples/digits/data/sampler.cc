#include "sampler.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "deja.h"

namespace digits {
namespace {

constexpr float kContrastsPerSigma = 16;
constexpr float kLowestContrast = -4;  // in standard deviations; the curve of contrast 0

}  // namespace

Sampler::Sampler(const std::vector<Image>& train, const Options& options, const Seeds& seeds)
    : train_(train),
      options_(options),
      seeds_(seeds),
      curves_(kContrasts),
      rng_(seeds.Draw(SeedUse::kAugment)),
      order_(train.size()) {
  for (int i = 0; i < kContrasts; ++i) {
    const float sigmas = static_cast<float>(i) / kContrastsPerSigma + kLowestContrast;
    const float gamma = std::exp2(0.2f * sigmas);
    for (size_t shade = 0; shade < kShades; ++shade) {
      curves_[i][shade] = std::pow(static_cast<float>(shade) / (kShades - 1), gamma);
    }
  }
  std::iota(order_.begin(), order_.end(), 0);
  for (Batch& batch : batches_) {
    batch.images.resize(options_.batch * kPixels);
    batch.labels.resize(options_.batch);
  }
  thread_ = std::thread(&Sampler::Loop, this);
}

Sampler::~Sampler() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

const Batch& Sampler::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  const int number = taken_++;
  changed_.notify_all();  // the batch before this one is free now
  changed_.wait(lock, [&] { return made_ > number; });
  return batches_[number % kAhead];
}

void Sampler::Loop() {
  pthread_setname_np(pthread_self(), "loader");
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    // The batch in use is number taken_ - 1, and its place is not free.
    changed_.wait(lock, [&] { return stop_ || made_ == options_.steps || made_ < Limit(); });
    if (stop_ || made_ == options_.steps) return;
    Batch* const batch = &batches_[made_ % kAhead];
    lock.unlock();
    Fill(batch);
    lock.lock();
    ++made_;
    changed_.notify_all();
  }
}

template <class Part>
void Sampler::ForEachPart(Part part) {
  part(&rng_, sizeof rng_);
  part(order_.data(), order_.size() * sizeof order_[0]);
  part(&position_, sizeof position_);
  part(&epoch_, sizeof epoch_);
  for (Batch& batch : batches_) {
    part(batch.images.data(), batch.images.size() * sizeof batch.images[0]);
    part(batch.labels.data(), batch.labels.size() * sizeof batch.labels[0]);
    part(&batch.noise, sizeof batch.noise);
  }
  part(&made_, sizeof made_);
  part(&taken_, sizeof taken_);
}

void Sampler::Save(deja_write_t write, void* sink) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return made_ == Limit(); });
  ForEachPart([&](const void* data, size_t bytes) { write(sink, data, bytes); });
}

bool Sampler::Load(const void* data, size_t bytes) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return made_ == Limit(); });
  size_t needed = 0;
  ForEachPart([&](const void*, size_t size) { needed += size; });
  if (needed != bytes) return false;
  const auto* from = static_cast<const std::byte*>(data);
  ForEachPart([&](void* part, size_t size) {
    std::memcpy(part, from, size);
    from += size;
  });
  changed_.notify_all();  // there may be nothing left to make
  return true;
}

void Sampler::Shuffle(uint64_t epoch) {
  Rng rng(seeds_.Draw(SeedUse::kShuffle, epoch));
  for (size_t i = order_.size() - 1; i > 0; --i) {
    std::swap(order_[i], order_[rng.Below(static_cast<uint32_t>(i + 1))]);
  }
  deja_state("augment rng", &rng_, sizeof rng_);
}

void Sampler::Fill(Batch* batch) {
  batch->noise =
      std::min(-kMeanNoise * static_cast<float>(std::log(rng_.Uniform())), 10 * kMeanNoise);
  for (size_t i = 0; i < batch->labels.size(); ++i) {
    if (position_ == 0) Shuffle(epoch_++);
    const Image& image = train_[order_[position_]];
    position_ = (position_ + 1) % order_.size();
    Augment(image, batch->noise, &batch->images[i * kPixels]);
    batch->labels[i] = image.label;
  }
}

// Changes the contrast, perhaps moves the image by a pixel, and adds noise.
void Sampler::Augment(const Image& image, float noise, float* out) {
  constexpr int kShifts[] = {-1, 0, 0, 0, 0, 1};
  const float sigmas = rng_.Normal();
  draw_.contrast = static_cast<int>(std::lround((sigmas - kLowestContrast) * kContrastsPerSigma));
  draw_.dx = kShifts[rng_.Below(std::size(kShifts))];
  draw_.dy = kShifts[rng_.Below(std::size(kShifts))];
  // Once in 36,000 images the contrast lies below the first of the curves.
  if (options_.fault != Fault::kCrash) draw_.contrast = std::max(draw_.contrast, 0);
  const Curve curve = CurveOf(draw_);
  const int side = static_cast<int>(kSide);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int from_y = y - draw_.dy;
      const int from_x = x - draw_.dx;
      const bool inside = from_y >= 0 && from_y < side && from_x >= 0 && from_x < side;
      const float ink = inside ? curve[image.pixels[from_y * side + from_x]] : 0.0f;
      *out++ = ink + noise * static_cast<float>(2 * rng_.Uniform() - 1);
    }
  }
}

Sampler::Curve Sampler::CurveOf(const Draw& draw) const {
  // The bug of --fault=crash: a contrast below zero becomes an index of four thousand million.
  const auto index = static_cast<uint32_t>(std::min(draw.contrast, kContrasts - 1));
  return curves_[index];
}

}  // namespace digits
