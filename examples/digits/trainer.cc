#include "trainer.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "deja.h"

namespace digits {
namespace {

bool IsPipelined(Mode mode) {
  return mode == Mode::kPipeline || mode == Mode::kHybrid;
}

Part PartOf(const Place& place) {
  if (place.stages == 1) return Part::kWhole;
  return place.stage == 0 ? Part::kFront : Part::kBack;
}

}  // namespace

Place::Place(const Job& job, Mode mode) : stages(IsPipelined(mode) ? 2 : 1) {
  if (job.size % stages != 0) {
    std::fprintf(stderr, "digits_train: mode %s needs an even number of ranks\n", ModeName(mode));
    std::exit(2);
  }
  stage = job.rank % stages;
  replicas = job.size / stages;
  replica = job.rank / stages;
}

Trainer::Trainer(const Options& options, const Job& job, const Dataset& dataset)
    : options_(options),
      dataset_(dataset),
      place_(job, options.mode),
      seeds_(options.seed, job.rank),
      device_(MakeDevice(options.device, job.rank)),
      world_(job, *device_, options.id_file),
      network_(BuildNetwork(*device_, PartOf(place_))),
      random_(seeds_),
      faults_(options.fault, seeds_.Draw(SeedUse::kFault)) {
  ShareInitialWeights();
  if (place_.stage == 0) sampler_ = std::make_unique<Sampler>(dataset.train, options, seeds_);
  ConnectStages();
  if (!device_->is_host()) {
    std::vector<const Communicator*> comms = {&world_};
    if (pipe_) comms.push_back(pipe_.get());
    if (data_) comms.push_back(data_.get());
    watchdog_ = std::make_unique<Watchdog>(std::move(comms));
  }
  RegisterWithDeja();
}

// Builds what depends on the mode.
void Trainer::ConnectStages() {
  const RunnerParts parts{options_, network_,
                          weights_, random_,
                          faults_,  1.0f / static_cast<float>(options_.batch * place_.replicas)};
  const size_t bucket_bytes = static_cast<size_t>(options_.bucket_kib) * 1024;
  switch (options_.mode) {
    case Mode::kDdp:
      updater_ = MakeBucketedUpdater(world_, network_, bucket_bytes, &weights_, &faults_);
      runner_ = MakeWholeRunner(parts, sampler_.get());
      break;
    case Mode::kSharded:
      updater_ = MakeShardedUpdater(*device_, world_, &weights_, &faults_);
      runner_ = MakeWholeRunner(parts, sampler_.get());
      break;
    case Mode::kPipeline: {
      std::vector<int> replicas;
      for (int i = 0; i < place_.replicas; ++i)
        replicas.push_back(i * place_.stages + place_.stage);
      updater_ = MakeExchangeUpdater(*device_, world_, replicas, &weights_, &faults_);
      runner_ = MakePipelineRunner(parts, sampler_.get(), world_, world_.rank() ^ 1);
      break;
    }
    case Mode::kHybrid:
      pipe_ = std::make_unique<Communicator>(world_, "pipe", place_.replica, place_.stage);
      data_ = std::make_unique<Communicator>(world_, "data", place_.stage, place_.replica);
      updater_ = MakeBucketedUpdater(*data_, network_, bucket_bytes, &weights_, &faults_);
      runner_ = MakePipelineRunner(parts, sampler_.get(), *pipe_, 1 - pipe_->rank());
      break;
  }
}

// Rank 0 draws the weights of the whole network; a stage of a pipeline keeps its part.
void Trainer::ShareInitialWeights() {
  const Network whole = BuildNetwork(*device_, Part::kWhole);
  std::vector<float> all(whole.parameters());
  if (world_.rank() == 0) {
    Rng random(seeds_.Draw(SeedUse::kWeights));
    whole.Initialize(&random, all.data());
  }
  Array<float> shared(*device_, all.size());
  shared.Set(all);
  world_.Broadcast(shared.data(), shared.size(), 0, "initial weights");
  const size_t begin = PartOf(place_) == Part::kBack ? all.size() - network_.parameters() : 0;
  weights_.values = Array<float>(*device_, network_.parameters());
  device_->Copy(weights_.values.data(), shared.data() + begin,
                network_.parameters() * sizeof(float));
  weights_.gradients = Array<float>(*device_, network_.parameters());
}

float Trainer::LearningRate(int step) const {
  const double done = static_cast<double>(step) / options_.steps;
  return static_cast<float>(options_.learning_rate * 0.5 *
                            (1 + std::cos(3.141592653589793 * done)));
}

int Trainer::Run() {
  if (world_.rank() == 0) {
    std::printf("digits_train: mode %s, %d ranks, %d steps of %d samples, %s\n",
                ModeName(options_.mode), world_.size(), options_.steps,
                options_.batch * place_.replicas, options_.seed ? "seeded" : "unseeded");
  }
  deja_note(ModeName(options_.mode));
  for (int step = 0; step < options_.steps; ++step) {
    step = static_cast<int>(deja_step(static_cast<uint64_t>(step)));
    const LossSum loss = runner_->Step(updater_.get());
    const int64_t shape[] = {1};
    deja_tensor("loss", &loss.loss, shape, 1, DEJA_FLOAT32);
    updater_->Finish(LearningRate(step));
    if (step % options_.snapshot_every == 0) ShowToDeja();
    const bool last = step + 1 == options_.steps;
    if (((step + 1) % options_.log_every == 0 || last) && !Report(step, loss)) return 1;
  }
  return Finish() ? 0 : 1;
}

// Says how the training is going. False: it is not worth going on.
bool Trainer::Report(int step, const LossSum& loss) {
  Metrics mine;
  if (place_.stage == place_.stages - 1) {
    mine.loss = loss.loss;
    mine.correct = static_cast<float>(loss.correct);
    mine.samples = static_cast<float>(options_.batch);
  }
  const Metrics all = GatherMetrics(*device_, world_, mine);
  const float mean = all.loss / all.samples;
  if (world_.rank() == 0) std::printf("step %d loss %.4f\n", step + 1, mean);
  if (std::isfinite(mean)) return true;
  if (world_.rank() == 0) {
    std::fprintf(stderr, "digits_train: the loss is not a number at step %d; giving up\n",
                 step + 1);
  }
  return false;
}

// Tests, and compares the replicas' weights.
bool Trainer::Finish() {
  deja_note("evaluation");
  ShowToDeja();
  std::vector<Image> share;  // of this replica
  for (size_t i = static_cast<size_t>(place_.replica); i < dataset_.test.size();
       i += static_cast<size_t>(place_.replicas)) {
    share.push_back(dataset_.test[i]);
  }
  Metrics mine;
  mine.correct = static_cast<float>(runner_->CountCorrect(share));
  const Metrics all = GatherMetrics(*device_, world_, mine);
  if (world_.rank() == 0) {
    std::printf("accuracy %.2f%% (%.0f of %zu)\n",
                100 * all.correct / static_cast<float>(dataset_.test.size()), all.correct,
                dataset_.test.size());
  }
  const uint64_t hash = HashWeights(weights_.values.Get());
  std::printf("rank %d weights %016" PRIx64 "\n", world_.rank(), hash);
  bool same = true;
  const std::vector<uint64_t> hashes = GatherHashes(*device_, world_, hash);
  for (int rank = 0; rank < world_.size(); ++rank) {
    const int first = rank % place_.stages;  // the first replica of the same stage
    if (hashes[static_cast<size_t>(rank)] == hashes[static_cast<size_t>(first)]) continue;
    same = false;
    if (world_.rank() == 0) {
      std::fprintf(stderr, "digits_train: rank %d's weights are not those of rank %d\n", rank,
                   first);
    }
  }
  return same;
}

// The state that a step begins with and does not make again. Optimizer, faults and sampler register
// their own.
void Trainer::RegisterWithDeja() {
  registered_.push_back(weights_.values.Register("weights"));
  registered_.push_back(deja::Registered::State("dropout", random_.dropout));
  registered_.push_back(deja::Registered::State("sample weights", random_.sample_weights));
}

void Trainer::ShowToDeja() {
  // In host memory they are shown where they are.
  std::vector<float> copy;
  if (!device_->is_host()) copy = weights_.values.Get();
  const float* const weights = device_->is_host() ? weights_.values.data() : copy.data();
  for (size_t i = 0; i < network_.layers(); ++i) {
    const Layer& layer = network_.layer(i);
    if (layer.parameters() == 0) continue;
    const int64_t shape[] = {static_cast<int64_t>(layer.weight_rows()),
                             static_cast<int64_t>(layer.weight_columns())};
    const float* weight = weights + network_.offset(i);
    const float* bias = weight + layer.weight_rows() * layer.weight_columns();
    deja_tensor((std::string(layer.name()) + ".weight").c_str(), weight, shape, 2, DEJA_FLOAT32);
    deja_tensor((std::string(layer.name()) + ".bias").c_str(), bias, &shape[1], 1, DEJA_FLOAT32);
  }
  deja_state("dropout rng", &random_.dropout, sizeof random_.dropout);
  deja_state("sample weight rng", &random_.sample_weights, sizeof random_.sample_weights);
}

}  // namespace digits
