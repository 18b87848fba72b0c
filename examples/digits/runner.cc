#include "runner.h"

#include <algorithm>

#include "data/sample_weights.h"

namespace digits {
namespace {

// Images `first` … as the network sees them when nothing is augmented. Returns how many fit on the
// tape.
size_t LoadImages(const std::vector<Image>& images, size_t first, Tape* tape) {
  const size_t count = std::min(tape->batch, images.size() - first);
  std::vector<float> pixels;
  for (size_t i = first; i < first + count; ++i) {
    for (const uint8_t shade : images[i].pixels)
      pixels.push_back(static_cast<float>(shade) / (kShades - 1));
  }
  tape->input().Set(pixels);
  return count;
}

// The end of a pass over the network's last layer: what it gave is compared with the labels.
class Judge {
 public:
  // For passes of `batch` samples, `passes` of them before Sum().
  Judge(Device& device, size_t batch, size_t passes)
      : device_(device),
        batch_(batch),
        labels_(device, batch),
        weights_(device, batch),
        gradient_(device, batch * kClasses),
        terms_(device, 2 * batch * passes) {}

  Array<int32_t>& labels() { return labels_; }

  // The gradient of the loss, for the way back.
  float* Loss(size_t pass, const Tape& tape, const std::vector<float>& weights, float scale) {
    weights_.Set(weights);
    device_.Loss(batch_, tape.output().data(), labels_.data(), weights_.data(), scale,
                 gradient_.data(), terms_.data() + 2 * batch_ * pass);
    return gradient_.data();
  }

  // Of all passes; waits for them.
  LossSum Sum() const {
    const std::vector<float> terms = terms_.Get();
    LossSum sum;
    for (size_t at = 0; at < terms.size(); at += 2 * batch_) {
      const LossSum loss = SumOfLosses(&terms[at], batch_);
      sum.loss += loss.loss;
      sum.correct += loss.correct;
    }
    return sum;
  }

  // How many of `images`, from `first` on, the tape has recognised.
  int CountCorrect(const std::vector<Image>& images, size_t first, size_t count, const Tape& tape) {
    std::vector<int32_t> labels(count);
    for (size_t i = 0; i < count; ++i) labels[i] = images[first + i].label;
    labels_.Set(labels);
    device_.Loss(count, tape.output().data(), labels_.data(), nullptr, 1, nullptr, terms_.data());
    return SumOfLosses(terms_.Get().data(), count).correct;
  }

 private:
  Device& device_;
  const size_t batch_;
  Array<int32_t> labels_;
  Array<float> weights_;
  Array<float> gradient_;
  Array<float> terms_;
};

class WholeRunner final : public Runner {
 public:
  WholeRunner(const RunnerParts& parts, Sampler* sampler)
      : parts_(parts),
        sampler_(sampler),
        tape_(parts.network.MakeTape(static_cast<size_t>(parts.options.batch))),
        judge_(parts.network.device(), tape_.batch, 1),
        sample_weights_(tape_.batch) {}

  LossSum Step(Updater* updater) override {
    const Batch& batch = sampler_->Next();
    parts_.faults.BeginStep(batch.noise);
    tape_.input().Set(batch.images);
    judge_.labels().Set(batch.labels);
    parts_.network.Forward(parts_.weights.values.data(), &tape_, &parts_.random.dropout);
    DrawSampleWeights(parts_.options.fault, &parts_.random.sample_weights, &sample_weights_);
    float* const gradient = judge_.Loss(0, tape_, sample_weights_, parts_.gradient_scale);
    parts_.network.Backward(parts_.weights.values.data(), &tape_, gradient,
                            parts_.weights.gradients.data(), false,
                            [&](size_t layer) { updater->LayerReady(layer); });
    return judge_.Sum();
  }

  int CountCorrect(const std::vector<Image>& images) override {
    int correct = 0;
    for (size_t first = 0; first < images.size(); first += tape_.batch) {
      const size_t count = LoadImages(images, first, &tape_);
      parts_.network.Forward(parts_.weights.values.data(), &tape_, nullptr);
      correct += judge_.CountCorrect(images, first, count, tape_);
    }
    return correct;
  }

 private:
  const RunnerParts parts_;
  Sampler* const sampler_;
  Tape tape_;
  Judge judge_;
  std::vector<float> sample_weights_;
};

// The first stage works on part i + 1 of a batch while the second works on part i.
class FrontRunner final : public Runner {
 public:
  FrontRunner(const RunnerParts& parts, Sampler* sampler, const Communicator& comm, int peer)
      : parts_(parts), sampler_(sampler), comm_(comm), peer_(peer), part_(PartSize(parts.options)) {
    for (Tape& tape : tapes_) tape = parts.network.MakeTape(part_);
    gradient_ = Array<float>(parts.network.device(), part_ * parts.network.outputs());
    labels_ = Array<int32_t>(parts.network.device(),
                             part_ * static_cast<size_t>(parts.options.microbatches));
  }

  static size_t PartSize(const Options& options) {
    return static_cast<size_t>(options.batch / options.microbatches);
  }

  LossSum Step(Updater* updater) override {
    const Batch& batch = sampler_->Next();
    parts_.faults.BeginStep(batch.noise);
    labels_.Set(batch.labels);
    const int parts = parts_.options.microbatches;
    for (int i = 0; i < parts; ++i) {
      Tape& tape = tapes_[i % 2];
      const float* images = &batch.images[static_cast<size_t>(i) * part_ * kPixels];
      tape.input().Set(images, part_ * kPixels);
      parts_.network.Forward(parts_.weights.values.data(), &tape, &parts_.random.dropout);
      comm_.Group("activations", [&] {
        comm_.Send(tape.output().data(), tape.output().size(), peer_, "activations");
        comm_.Send(labels_.data() + static_cast<size_t>(i) * part_, part_, peer_, "labels");
        if (i > 0) comm_.Receive(gradient_.data(), gradient_.size(), peer_, "activation gradients");
      });
      if (i > 0) Backward(i - 1, [](size_t) {});
    }
    comm_.Receive(gradient_.data(), gradient_.size(), peer_, "activation gradients");
    Backward(parts - 1, [&](size_t layer) { updater->LayerReady(layer); });
    return {};
  }

  int CountCorrect(const std::vector<Image>& images) override {
    Tape& tape = tapes_[0];
    for (size_t first = 0; first < images.size(); first += tape.batch) {
      LoadImages(images, first, &tape);
      parts_.network.Forward(parts_.weights.values.data(), &tape, nullptr);
      comm_.Send(tape.output().data(), tape.output().size(), peer_, "test activations");
    }
    return 0;
  }

 private:
  void Backward(int part, const std::function<void(size_t)>& layer_done) {
    parts_.network.Backward(parts_.weights.values.data(), &tapes_[part % 2], gradient_.data(),
                            parts_.weights.gradients.data(), false, layer_done);
  }

  const RunnerParts parts_;
  Sampler* const sampler_;
  const Communicator& comm_;
  const int peer_;
  const size_t part_;  // samples
  Tape tapes_[2];
  Array<float> gradient_;
  Array<int32_t> labels_;  // of the whole batch
};

class BackRunner final : public Runner {
 public:
  BackRunner(const RunnerParts& parts, const Communicator& comm, int peer)
      : parts_(parts),
        comm_(comm),
        peer_(peer),
        tape_(parts.network.MakeTape(FrontRunner::PartSize(parts.options))),
        judge_(parts.network.device(), tape_.batch,
               static_cast<size_t>(parts.options.microbatches)),
        sample_weights_(tape_.batch) {}

  LossSum Step(Updater* updater) override {
    const float* in_gradient = nullptr;
    const size_t inputs = tape_.input().size();
    for (int i = 0; i < parts_.options.microbatches; ++i) {
      comm_.Group("activations", [&] {
        comm_.Receive(tape_.input().data(), inputs, peer_, "activations");
        comm_.Receive(judge_.labels().data(), tape_.batch, peer_, "labels");
        if (in_gradient) comm_.Send(in_gradient, inputs, peer_, "activation gradients");
      });
      parts_.network.Forward(parts_.weights.values.data(), &tape_, &parts_.random.dropout);
      DrawSampleWeights(parts_.options.fault, &parts_.random.sample_weights, &sample_weights_);
      float* const gradient =
          judge_.Loss(static_cast<size_t>(i), tape_, sample_weights_, parts_.gradient_scale);
      const bool last = i == parts_.options.microbatches - 1;
      in_gradient =
          parts_.network.Backward(parts_.weights.values.data(), &tape_, gradient,
                                  parts_.weights.gradients.data(), true, [&](size_t layer) {
                                    if (last) updater->LayerReady(layer);
                                  });
    }
    comm_.Send(in_gradient, inputs, peer_, "activation gradients");
    return judge_.Sum();
  }

  int CountCorrect(const std::vector<Image>& images) override {
    int correct = 0;
    for (size_t first = 0; first < images.size(); first += tape_.batch) {
      comm_.Receive(tape_.input().data(), tape_.input().size(), peer_, "test activations");
      parts_.network.Forward(parts_.weights.values.data(), &tape_, nullptr);
      const size_t count = std::min(tape_.batch, images.size() - first);
      correct += judge_.CountCorrect(images, first, count, tape_);
    }
    return correct;
  }

 private:
  const RunnerParts parts_;
  const Communicator& comm_;
  const int peer_;
  Tape tape_;
  Judge judge_;
  std::vector<float> sample_weights_;
};

}  // namespace

std::unique_ptr<Runner> MakeWholeRunner(const RunnerParts& parts, Sampler* sampler) {
  return std::make_unique<WholeRunner>(parts, sampler);
}

std::unique_ptr<Runner> MakePipelineRunner(const RunnerParts& parts, Sampler* sampler,
                                           const Communicator& comm, int peer) {
  if (sampler) return std::make_unique<FrontRunner>(parts, sampler, comm, peer);
  return std::make_unique<BackRunner>(parts, comm, peer);
}

}  // namespace digits
