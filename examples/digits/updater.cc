#include "updater.h"

#include <utility>

namespace digits {
namespace {

void Clear(Device& device, Array<float>* values) {
  device.Zero(values->data(), values->size());
}

class BucketedUpdater final : public Updater {
 public:
  BucketedUpdater(const Communicator& replicas, const Network& network, size_t bucket_bytes,
                  Weights* weights, Faults* faults)
      : device_(network.device()),
        weights_(weights),
        faults_(faults),
        optimizer_(device_, network.parameters()),
        reducer_(replicas, network, bucket_bytes, weights->gradients.data(), faults) {}

  void LayerReady(size_t i) override {
    faults_->MaybeHang();
    reducer_.LayerReady(i);
  }

  void Finish(float learning_rate) override {
    reducer_.Wait();
    optimizer_.Update(learning_rate, weights_->gradients.data(), weights_->values.data());
    Clear(device_, &weights_->gradients);
  }

 private:
  Device& device_;
  Weights* const weights_;
  Faults* const faults_;
  Adam optimizer_;
  BucketedReducer reducer_;
};

class ShardedUpdater final : public Updater {
 public:
  ShardedUpdater(Device& device, const Communicator& replicas, Weights* weights, Faults* faults)
      : device_(device),
        replicas_(replicas),
        weights_(weights),
        faults_(faults),
        share_((weights->values.size() + replicas.size() - 1) / replicas.size()),
        optimizer_(device, share_) {
    weights_->values.Grow(share_ * replicas.size());
    weights_->gradients.Grow(share_ * replicas.size());
  }

  void Finish(float learning_rate) override {
    faults_->MaybeHang();
    const size_t mine = share_ * static_cast<size_t>(replicas_.rank());
    if (!faults_->SkipsCollective()) {
      replicas_.ReduceScatterSum(weights_->gradients.data(), faults_->Count(share_), "gradients");
    }
    float* const gradients = weights_->gradients.data() + mine;
    faults_->MaybeCorrupt(device_, device_.stream(), gradients, share_);
    optimizer_.Update(learning_rate, gradients, weights_->values.data() + mine);
    replicas_.AllGather(weights_->values.data(), share_, "weights");
    Clear(device_, &weights_->gradients);
  }

 private:
  Device& device_;
  const Communicator& replicas_;
  Weights* const weights_;
  Faults* const faults_;
  const size_t share_;
  Adam optimizer_;
};

class ExchangeUpdater final : public Updater {
 public:
  ExchangeUpdater(Device& device, const Communicator& world, std::vector<int> replicas,
                  Weights* weights, Faults* faults)
      : device_(device),
        world_(world),
        replicas_(std::move(replicas)),
        weights_(weights),
        faults_(faults),
        sum_(device, weights->values.size()),
        optimizer_(device, weights->values.size()) {
    for (size_t i = 0; i < replicas_.size(); ++i)
      received_.emplace_back(device, weights->values.size());
  }

  void Finish(float learning_rate) override {
    faults_->MaybeHang();
    if (!faults_->SkipsCollective()) Exchange();
    Clear(device_, &sum_);
    for (size_t i = 0; i < replicas_.size(); ++i) {
      const bool own = replicas_[i] == world_.rank();
      const Array<float>& part = own ? weights_->gradients : received_[i];
      device_.Add(part.data(), sum_.data(), sum_.size());
    }
    faults_->MaybeCorrupt(device_, device_.stream(), sum_.data(), sum_.size());
    optimizer_.Update(learning_rate, sum_.data(), weights_->values.data());
    Clear(device_, &weights_->gradients);
  }

 private:
  void Exchange() {
    const size_t count = faults_->Count(sum_.size());
    world_.Group("gradients", [&] {
      for (size_t i = 0; i < replicas_.size(); ++i) {
        if (replicas_[i] == world_.rank()) continue;
        world_.Send(weights_->gradients.data(), count, replicas_[i], "gradients");
        world_.Receive(received_[i].data(), count, replicas_[i], "gradients");
      }
    });
  }

  Device& device_;
  const Communicator& world_;
  const std::vector<int> replicas_;
  Weights* const weights_;
  Faults* const faults_;
  std::vector<Array<float>> received_;  // one a replica; this rank's own stays unused
  Array<float> sum_;
  Adam optimizer_;
};

}  // namespace

std::unique_ptr<Updater> MakeBucketedUpdater(const Communicator& replicas, const Network& network,
                                             size_t bucket_bytes, Weights* weights,
                                             Faults* faults) {
  return std::make_unique<BucketedUpdater>(replicas, network, bucket_bytes, weights, faults);
}

std::unique_ptr<Updater> MakeShardedUpdater(Device& device, const Communicator& replicas,
                                            Weights* weights, Faults* faults) {
  return std::make_unique<ShardedUpdater>(device, replicas, weights, faults);
}

std::unique_ptr<Updater> MakeExchangeUpdater(Device& device, const Communicator& world,
                                             std::vector<int> replicas, Weights* weights,
                                             Faults* faults) {
  return std::make_unique<ExchangeUpdater>(device, world, std::move(replicas), weights, faults);
}

}  // namespace digits
