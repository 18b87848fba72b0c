#include "updater.h"

#include <algorithm>
#include <utility>

namespace digits {
namespace {

void Clear(std::vector<float>* values) {
  std::fill(values->begin(), values->end(), 0.0f);
}

class BucketedUpdater final : public Updater {
 public:
  BucketedUpdater(const Communicator& replicas, const Network& network, size_t bucket_bytes,
                  Weights* weights, Faults* faults)
      : weights_(weights),
        faults_(faults),
        optimizer_(network.parameters()),
        reducer_(replicas, network, bucket_bytes, weights->gradients.data(), faults) {}

  void LayerReady(size_t i) override {
    faults_->MaybeHang();
    reducer_.LayerReady(i);
  }

  void Finish(float learning_rate) override {
    reducer_.Wait();
    optimizer_.Update(learning_rate, weights_->gradients.data(), weights_->values.data());
    Clear(&weights_->gradients);
  }

 private:
  Weights* const weights_;
  Faults* const faults_;
  Adam optimizer_;
  BucketedReducer reducer_;
};

class ShardedUpdater final : public Updater {
 public:
  ShardedUpdater(const Communicator& replicas, Weights* weights, Faults* faults)
      : replicas_(replicas),
        weights_(weights),
        faults_(faults),
        share_((weights->values.size() + replicas.size() - 1) / replicas.size()),
        optimizer_(share_) {
    weights_->values.resize(share_ * replicas.size());
    weights_->gradients.resize(share_ * replicas.size());
  }

  void Finish(float learning_rate) override {
    faults_->MaybeHang();
    const size_t mine = share_ * static_cast<size_t>(replicas_.rank());
    if (!faults_->SkipsCollective()) {
      replicas_.ReduceScatterSum(weights_->gradients.data(), faults_->Count(share_), "gradients");
    }
    faults_->MaybeCorrupt(&weights_->gradients[mine], share_);
    optimizer_.Update(learning_rate, &weights_->gradients[mine], &weights_->values[mine]);
    replicas_.AllGather(weights_->values.data(), share_, "weights");
    Clear(&weights_->gradients);
  }

 private:
  const Communicator& replicas_;
  Weights* const weights_;
  Faults* const faults_;
  const size_t share_;
  Adam optimizer_;
};

class ExchangeUpdater final : public Updater {
 public:
  ExchangeUpdater(const Communicator& world, std::vector<int> replicas, Weights* weights,
                  Faults* faults)
      : world_(world),
        replicas_(std::move(replicas)),
        weights_(weights),
        faults_(faults),
        received_(replicas_.size(), std::vector<float>(weights->values.size())),
        sum_(weights->values.size()),
        optimizer_(weights->values.size()) {}

  void Finish(float learning_rate) override {
    faults_->MaybeHang();
    if (!faults_->SkipsCollective()) Exchange();
    Clear(&sum_);
    for (size_t i = 0; i < replicas_.size(); ++i) {
      const bool own = replicas_[i] == world_.rank();
      const std::vector<float>& part = own ? weights_->gradients : received_[i];
      for (size_t j = 0; j < sum_.size(); ++j) sum_[j] += part[j];
    }
    faults_->MaybeCorrupt(sum_.data(), sum_.size());
    optimizer_.Update(learning_rate, sum_.data(), weights_->values.data());
    Clear(&weights_->gradients);
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

  const Communicator& world_;
  const std::vector<int> replicas_;
  Weights* const weights_;
  Faults* const faults_;
  std::vector<std::vector<float>> received_;  // one a replica; this rank's own stays unused
  std::vector<float> sum_;
  Adam optimizer_;
};

}  // namespace

std::unique_ptr<Updater> MakeBucketedUpdater(const Communicator& replicas, const Network& network,
                                             size_t bucket_bytes, Weights* weights,
                                             Faults* faults) {
  return std::make_unique<BucketedUpdater>(replicas, network, bucket_bytes, weights, faults);
}

std::unique_ptr<Updater> MakeShardedUpdater(const Communicator& replicas, Weights* weights,
                                            Faults* faults) {
  return std::make_unique<ShardedUpdater>(replicas, weights, faults);
}

std::unique_ptr<Updater> MakeExchangeUpdater(const Communicator& world, std::vector<int> replicas,
                                             Weights* weights, Faults* faults) {
  return std::make_unique<ExchangeUpdater>(world, std::move(replicas), weights, faults);
}

}  // namespace digits
