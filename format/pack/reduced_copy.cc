#include "format/pack/reduced_copy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "common/os/file.h"
#include "format/pack/bundle_writer.h"
#include "format/pack/rank_copy.h"
#include "format/wire/format_version.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_writer.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

constexpr int kZstdLevel = 3;               // unless another is asked for
constexpr size_t kBatchBytes = 1 << 20;     // larger ones than a recording's compress better
constexpr uint64_t kEndBytes = 1024;        // at most, of what ends the files of a folder
constexpr uint64_t kIndexElementBytes = 8;  // around each of them

// "rank 2", "ranks 0, 2 and 5 more"
std::string Names(const std::vector<uint32_t>& ranks) {
  constexpr size_t kMost = 8;
  std::string names = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(kMost, ranks.size()); ++i)
    names += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > kMost) names += " and " + std::to_string(ranks.size() - kMost) + " more";
  return names;
}

// Whether the process ended as it should not have, by itself: SIGTERM is for those that are left
// over when another one has failed.
bool Failed(const RankReader& reader) {
  constexpr uint32_t kSigTerm = 15;
  const ProcessFate& fate = reader.totals().fate;
  if (fate.known && (fate.exit_code > 0 || (fate.signal != 0 && fate.signal != kSigTerm)))
    return true;
  return std::any_of(reader.batches().begin(), reader.batches().end(), [](const BatchInfo& batch) {
    return (batch.kinds & 1u << static_cast<uint32_t>(EventKind::kCrash)) != 0;
  });
}

// On the clock of the wall.
uint64_t EndedAt(const RankReader& reader) {
  const TraceHeader& header = reader.header();
  uint64_t last = header.start_mono_ns;
  for (const BatchInfo& batch : reader.batches()) last = std::max(last, batch.last_time_ns);
  return header.start_wall_ns + (last - header.start_mono_ns);
}

std::string WhatDidNotFit(Period period, bool has_steps) {
  if (period == kInputs) return "all";
  if (period == kStart) return "those before the first step";
  if (has_steps) return "those of steps up to " + std::to_string(period);
  return "those of the first " + std::to_string(period + 1) + " of " + std::to_string(kParts) +
         " parts of the recording";
}

// Where bytes are counted only.
class CountedFile final : public AppendFile {
 public:
  explicit CountedFile(uint64_t size) : size_(size) {}
  Status Append(std::span<const std::byte> first, std::span<const std::byte> second) override {
    size_ += first.size() + second.size();
    return {};
  }
  Status Truncate(uint64_t size) override {
    size_ = size;
    return {};
  }
  Status Sync() override { return {}; }
  [[nodiscard]] uint64_t size() const override { return size_; }

 private:
  uint64_t size_;
};

}  // namespace

Status ReducedCopy::Write(const std::string& directory) {
  DEJA_RETURN_IF_ERROR(FindParts(directory));
  DEJA_RETURN_IF_ERROR(ChooseRanks());
  if (options_.rewriter != nullptr) {
    for (const Part& part : parts_) DEJA_RETURN_IF_ERROR(options_.rewriter->Learn(*part.reader));
    DEJA_RETURN_IF_ERROR(options_.rewriter->Settle());
  }
  DEJA_RETURN_IF_ERROR(CopyAllEvents());
  DEJA_RETURN_IF_ERROR(KeepPayloads());
  for (Part& part : parts_) DEJA_RETURN_IF_ERROR(Finish(part));
  return {};
}

std::vector<std::string> ReducedCopy::folders() const {
  std::vector<std::string> folders;
  for (const Part& part : parts_) folders.push_back(part.out);
  return folders;
}

std::vector<BundleOmission> ReducedCopy::omissions() const {
  std::vector<BundleOmission> omissions;
  for (const Part& part : parts_) {
    const LeftOut& left_out = part.left_out;
    if (left_out.payloads == 0) continue;
    omissions.push_back(
        {part.rank, part.child, left_out.payloads, left_out.payload_bytes, left_out.what});
  }
  return omissions;
}

Status ReducedCopy::FindParts(const std::string& directory) {
  const auto add = [&](uint32_t rank, const std::string& child, const std::string& folder,
                       const RankReader* reader) {
    Part part;
    part.rank = rank;
    part.child = child;
    part.reader = reader;
    part.out = directory + folder.substr(folder.rfind('/'));
    Resize(end_bytes_, part.end_bytes, kEndBytes);
    part.name_bytes = top_.size() + part.out.size() - directory.size() + 1;
    for (const BatchInfo& batch : reader->batches()) total_ += batch.size;
    total_ += reader->totals().payload_bytes + reader->totals().partial_payload_bytes;
    parts_.push_back(std::move(part));
  };
  std::set<std::string> before;
  for (const RankFolder& folder : trace_.ranks()) before.insert(folder.path);
  for (const RankFolder& folder : trace_.ranks()) {
    const auto attempt = static_cast<int>(folder.attempt);
    DEJA_ASSIGN_OR_RETURN(const RankReader* const reader, trace_.Rank(folder.rank, attempt));
    add(folder.rank, "", folder.path, reader);
    DEJA_ASSIGN_OR_RETURN(const auto children, trace_.Children(folder.rank, attempt));
    for (const ChildFolder& child : children) {
      DEJA_ASSIGN_OR_RETURN(const RankReader* const of_child,
                            trace_.Child(folder.rank, child.name, attempt));
      add(folder.rank, child.name, child.path, of_child);
    }
    // One that is not there is missing in the smaller trace, too.
    const auto life = trace_.LifeBefore(folder.rank, attempt);
    for (size_t i = 0; life && i + 1 < life->size(); ++i) {
      if (!before.insert((*life)[i].path).second) continue;
      DEJA_ASSIGN_OR_RETURN(const RankReader* const reader_before, trace_.Process((*life)[i]));
      add(folder.rank, "before its fork", (*life)[i].path, reader_before);
    }
  }
  return {};
}

Status ReducedCopy::ChooseRanks() {
  chosen_ranks_ = options_.ranks;
  if (chosen_ranks_.empty() && options_.max_bytes != 0) {
    // Others often fail because one has failed.
    const Part* first = nullptr;
    for (const Part& part : parts_) {
      if (!part.child.empty() || !Failed(*part.reader)) continue;
      if (first == nullptr || EndedAt(*part.reader) < EndedAt(*first->reader)) first = &part;
    }
    chosen_ranks_.push_back(first == nullptr ? parts_.front().rank : first->rank);
  }
  std::sort(chosen_ranks_.begin(), chosen_ranks_.end());
  chosen_ranks_.erase(std::unique(chosen_ranks_.begin(), chosen_ranks_.end()), chosen_ranks_.end());
  for (const uint32_t rank : chosen_ranks_) DEJA_RETURN_IF_ERROR(trace_.Rank(rank));
  for (Part& part : parts_) {
    part.chosen = chosen_ranks_.empty() ||
                  std::binary_search(chosen_ranks_.begin(), chosen_ranks_.end(), part.rank);
  }
  return {};
}

Status ReducedCopy::CopyAllEvents() {
  EventCopyOptions copy;
  copy.batch_bytes = kBatchBytes;
  copy.zstd_level = zstd_level();
  copy.drop_digests = options_.level == Level::kOrder;
  copy.rewriter = options_.rewriter;
  copy.done = [this](uint64_t bytes) { Advance(bytes); };
  for (Part& part : parts_) {
    if (mkdir(part.out.c_str(), 0700) != 0) return FailErrno("making: " + part.out, errno);
    part.header = part.reader->header();
    if (options_.rewriter != nullptr) {
      options_.rewriter->Begin(*part.reader);
      options_.rewriter->Rewrite(part.header);
    }
    part.header.format_minor = std::max(part.header.format_minor, kFormatMinor);
    part.header.level = std::min(part.header.level, static_cast<uint32_t>(options_.level));
    DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<FrameWriter> events,
                          StartCopy(part.out + "/" + kEventsFile, part.header, zstd_level()));
    const bool finished = part.reader->end().state == EndState::kCleanEnd;
    part.footer = part.reader->totals();
    if (!finished) part.footer.swept = 1;
    part.footer.payloads = part.footer.payload_bytes = 0;
    part.footer.segments.clear();  // all in one file
    part.footer.partial_payloads = part.footer.partial_payload_bytes = 0;
    part.footer.predicted = {};
    DEJA_ASSIGN_OR_RETURN(part.footer.events,
                          CopyEvents(*part.reader, *events, part.index.batches, copy, work_));
    uint64_t index = 0;
    for (const BatchInfo& batch : part.index.batches)
      index += EncodedSize(batch) + kIndexElementBytes;
    Resize(file_bytes_, part.events_bytes, events->offset());
    Resize(end_bytes_, part.end_bytes, part.end_bytes + index);
  }
  if (Fits()) return {};
  return Fail(ErrorCode::kLimit, "packing: without payloads the bundle has " +
                                     std::to_string(BundleBytes()) + " bytes, and " +
                                     std::to_string(options_.max_bytes) +
                                     " are allowed; allow more, leave digests out (--level order), "
                                     "or compress harder (--zstd-level 19)");
}

// ---- Payloads

bool ReducedCopy::IsWanted(Period period) const {
  if (period == kInputs) return true;
  if (options_.level != Level::kFull) return false;
  return period == kStart || !options_.steps ||
         (options_.steps->first <= period && period <= options_.steps->second);
}

ReducedCopy::Wants ReducedCopy::FindWants(const std::vector<size_t>& parts) const {
  Wants wants;
  for (const size_t part : parts) {
    const bool has_steps = parts_[part].reader->totals().steps != 0;
    const auto wanted = [&](Period period) {
      return has_steps || period >= kParts ? IsWanted(period) : options_.level == Level::kFull;
    };
    for (const PayloadUse& use : FindPayloadUses(*parts_[part].reader, wanted))
      wants.push_back({part, use});
  }
  // What is predicted follows from what was recorded before it.
  const auto rank_of = [this](Period period) {
    return options_.predict && period < kStart ? kStart - 1 - period : period;
  };
  std::stable_sort(wants.begin(), wants.end(), [&](const Want& a, const Want& b) {
    return rank_of(a.use.period) > rank_of(b.use.period);
  });
  return wants;
}

Status ReducedCopy::KeepPayloads() {
  std::vector<size_t> first;
  std::vector<size_t> others;
  for (size_t i = 0; i < parts_.size(); ++i) (parts_[i].chosen ? first : others).push_back(i);
  if (options_.max_bytes == 0) {
    for (const size_t part : first) DEJA_RETURN_IF_ERROR(KeepWhatFits(FindWants({part})));
    return {};
  }
  DEJA_ASSIGN_OR_RETURN(const bool all, KeepWhatFits(FindWants(first)));
  if (!all || !options_.ranks.empty()) return {};
  // There is room left: whole ranks more.
  while (!others.empty()) {
    const uint32_t rank = parts_[others.front()].rank;
    const auto end = std::find_if(others.begin(), others.end(),
                                  [&](size_t part) { return parts_[part].rank != rank; });
    const std::vector<size_t> of_rank(others.begin(), end);
    DEJA_ASSIGN_OR_RETURN(const bool fits, KeepGroup(FindWants(of_rank)));
    if (!fits) break;
    for (const size_t part : of_rank) parts_[part].chosen = true;
    chosen_ranks_.push_back(rank);
    others.erase(others.begin(), end);
  }
  std::sort(chosen_ranks_.begin(), chosen_ranks_.end());
  return {};
}

Result<bool> ReducedCopy::KeepWhatFits(const Wants& wants) {
  bool all = true;
  for (auto begin = wants.begin(); begin != wants.end();) {
    const Period period = begin->use.period;
    const auto end = std::find_if(begin, wants.end(),
                                  [&](const Want& want) { return want.use.period != period; });
    DEJA_ASSIGN_OR_RETURN(const bool fits, KeepGroup({begin, end}));
    begin = end;
    if (fits) continue;
    all = false;
    did_not_fit_.push_back(period);
    // What came before the first step may be large; steps are of use without it.
    if (period != kStart) break;
  }
  return all;
}

Result<bool> ReducedCopy::KeepGroup(std::span<const Want> group) {
  std::vector<Undo> undos;
  bool fits = true;
  while (!group.empty() && fits) {
    const size_t index = group.front().part;
    const auto end = std::find_if(group.begin(), group.end(),
                                  [&](const Want& want) { return want.part != index; });
    const Part& part = parts_[index];
    undos.push_back({index, part.payloads_bytes, part.end_bytes, part.end_is_exact,
                     part.index.payloads.size()});
    const auto size = static_cast<size_t>(end - group.begin());
    DEJA_ASSIGN_OR_RETURN(fits, KeepOfPart(group.first(size)));
    group = group.subspan(size);
  }
  fits = fits && Fits();
  if (!fits) DEJA_RETURN_IF_ERROR(GoBack(undos));
  return fits;
}

Result<bool> ReducedCopy::KeepOfPart(std::span<const Want> wants) {
  Part& part = parts_[wants.front().part];
  auto& kept = kept_[Sharing(part)];
  std::unique_ptr<FrameWriter> out;
  std::optional<PayloadCopier> copier;
  if (options_.predict && part.predictor == nullptr)
    part.predictor =
        std::make_unique<CheckpointPredictor>(*part.reader, part.out + "/" + kPayloadsFile);
  const auto done = [&](PayloadInfo info) {
    if (part.predictor != nullptr) part.predictor->Note(info);
    Resize(end_bytes_, part.end_bytes, part.end_bytes + EncodedSize(info) + kIndexElementBytes);
    part.end_is_exact = false;
    kept.insert(info.hash);
    part.index.payloads.push_back(std::move(info));
  };
  for (const Want& want : wants) {
    const Hash128& hash = want.use.hash;
    if (IsKept(kept, hash)) continue;
    const std::optional<uint64_t> size = part.reader->PayloadSize(hash);
    if (!size) continue;
    if (!copier) {
      const std::string path = part.out + "/" + kPayloadsFile;
      if (part.payloads_bytes == 0) {
        DEJA_ASSIGN_OR_RETURN(out, StartCopy(path, part.header, zstd_level()));
      } else {
        DEJA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, OpenAppendFile(path));
        out = std::make_unique<FrameWriter>(std::move(file));
      }
      copier.emplace(*part.reader, *out, work_,
                     options_.zstd_level > kZstdLevel ? options_.zstd_level : 0);
    }
    if (part.predictor != nullptr && part.predictor->Knows(hash)) {
      DEJA_RETURN_IF_ERROR(work_.Finish());  // what it follows from
      DEJA_ASSIGN_OR_RETURN(std::optional<PayloadInfo> info,
                            part.predictor->Copy(hash, *size, *out));
      if (info) done(std::move(*info));
    }
    if (!IsKept(kept, hash)) DEJA_RETURN_IF_ERROR(KeepOne(part, hash, *size, *copier, done));
    Resize(file_bytes_, part.payloads_bytes, out->offset());
    Advance(*size);
    if (!MayFit()) break;
  }
  if (!out) return true;
  if (!MayFit()) {
    work_.Discard();
    return false;
  }
  DEJA_RETURN_IF_ERROR(work_.Finish());
  Resize(file_bytes_, part.payloads_bytes, out->offset());
  return MayFit();
}

bool ReducedCopy::IsKept(const Hashes& kept, const Hash128& hash) const {
  if (options_.rewriter == nullptr) return kept.count(hash) != 0;
  const std::vector<Hash128> all = options_.rewriter->ReplacementsOf(hash);
  return !all.empty() && std::all_of(all.begin(), all.end(),
                                     [&](const Hash128& one) { return kept.count(one) != 0; });
}

// The payload, or what events that were rewritten name instead of it.
Status ReducedCopy::KeepOne(Part& part, const Hash128& hash, uint64_t size, PayloadCopier& copier,
                            const std::function<void(PayloadInfo)>& done) {
  if (options_.rewriter == nullptr) return copier.Copy(hash, size, done);
  auto& kept = kept_[Sharing(part)];
  for (const Hash128& other : options_.rewriter->ReplacementsOf(hash)) {
    if (kept.count(other) != 0) continue;
    const std::span<const std::byte> bytes = options_.rewriter->BytesOf(other);
    if (bytes.empty()) {
      DEJA_RETURN_IF_ERROR(copier.Copy(other, size, done));
      continue;
    }
    DEJA_RETURN_IF_ERROR(copier.Write(other, bytes, part.reader->PayloadElementSize(hash), done));
  }
  return {};
}

Status ReducedCopy::GoBack(const std::vector<Undo>& undos) {
  for (const Undo& undo : undos) {
    Part& part = parts_[undo.part];
    auto& kept = kept_[Sharing(part)];
    auto& payloads = part.index.payloads;
    for (size_t i = undo.payloads; i < payloads.size(); ++i) kept.erase(payloads[i].hash);
    payloads.erase(payloads.begin() + static_cast<ptrdiff_t>(undo.payloads), payloads.end());
    const std::string path = part.out + "/" + kPayloadsFile;
    if (undo.payloads_bytes == 0) {
      unlink(path.c_str());
    } else {
      DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file, OpenAppendFile(path));
      DEJA_RETURN_IF_ERROR(file->Truncate(undo.payloads_bytes));
    }
    Resize(file_bytes_, part.payloads_bytes, undo.payloads_bytes);
    Resize(end_bytes_, part.end_bytes, undo.end_bytes);
    part.end_is_exact = undo.end_is_exact;
  }
  return {};
}

// ---- The end of each folder

void ReducedCopy::CountLeftOut(Part& part) {
  const LeftOut& before = part.reader->left_out();
  LeftOut& left_out = part.left_out;
  const auto& kept = kept_[Sharing(part)];
  std::unordered_set<Hash128, HashOfHash> missing;
  const std::unique_ptr<EventCursor> cursor = part.reader->Events();
  while (const Event* event = cursor->Next()) {
    ForEachPayload(*event, [&](const PayloadReference& payload) {
      const Hash128& hash = payload.hash;
      if (IsKept(kept, hash) || !missing.insert(hash).second) return;
      const std::optional<uint64_t> size = part.reader->PayloadSize(hash);
      if (!size && before.payloads == 0) return;  // had been lost before
      ++left_out.payloads;
      left_out.payload_bytes += size.value_or(0);
    });
  }
  left_out.payload_bytes += before.payload_bytes;
  left_out.what = Describe(part);
  if (before.payloads != 0)
    left_out.what = before.what + (left_out.what.empty() ? "" : "; " + left_out.what);
}

std::string ReducedCopy::Describe(const Part& part) const {
  if (!part.chosen) return "all but what " + Names(chosen_ranks_) + " needed";
  std::vector<std::string> parts;
  if (options_.level == Level::kOrder) parts.emplace_back("digests and bytes of all tensors");
  if (options_.level == Level::kDigest) parts.emplace_back("bytes of all tensors");
  if (options_.steps) {
    const auto& [first, last] = *options_.steps;
    parts.push_back("those outside of steps " + std::to_string(first) +
                    (last == ~uint64_t{0} ? " and later" : " to " + std::to_string(last)));
  }
  for (const Period period : did_not_fit_)
    parts.push_back(WhatDidNotFit(period, part.reader->totals().steps != 0));
  if (options_.rewriter != nullptr) parts.emplace_back("what could not be redacted");
  std::string text;
  for (const std::string& one : parts) text += (text.empty() ? "" : ", ") + one;
  return text;
}

Status ReducedCopy::Finish(Part& part) {
  const bool has_all = part.chosen && did_not_fit_.empty() && !options_.steps &&
                       options_.level == Level::kFull && part.reader->left_out().payloads == 0;
  if (!has_all || options_.rewriter != nullptr) CountLeftOut(part);
  if (part.predictor != nullptr) part.footer.predicted = part.predictor->totals();
  std::optional<FrameWriter> payloads;
  if (part.payloads_bytes != 0) {
    DEJA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file,
                          OpenAppendFile(part.out + "/" + kPayloadsFile));
    payloads.emplace(std::move(file));
  }
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file,
                        OpenAppendFile(part.out + "/" + kEventsFile));
  FrameWriter events(std::move(file), zstd_level());
  return WriteEnd(part, part.left_out, events, payloads ? &*payloads : nullptr);
}

Status ReducedCopy::WriteEnd(const Part& part, const LeftOut& left_out, FrameWriter& events,
                             FrameWriter* payloads) const {
  Footer footer = part.footer;
  footer.payloads = part.index.payloads.size();
  for (const PayloadInfo& info : part.index.payloads) footer.payload_bytes += info.total_size;
  footer.index_offset = 0;
  footer.index_blocks.clear();
  footer.batch_directory = 0;
  if (payloads != nullptr) DEJA_RETURN_IF_ERROR(payloads->WriteFooter(footer));
  DEJA_RETURN_IF_ERROR(events.WriteIndex(part.index, footer));
  if (left_out.payloads != 0) {
    const LeftOutMessage message{left_out.payloads, left_out.payload_bytes, left_out.what};
    DEJA_RETURN_IF_ERROR(events.Write(FrameType::kLeftOut, AsBytes(EncodeToString(message))));
  }
  return events.WriteFooter(footer);
}

std::string ReducedCopy::Sharing(const Part& part) {
  return part.header.shares_with.empty() ? part.out : std::string(part.header.shares_with);
}

int ReducedCopy::zstd_level() const {
  return options_.zstd_level == 0 ? kZstdLevel : options_.zstd_level;
}

void ReducedCopy::FindEndBytes(Part& part) {
  // What will be said of what was left out is known at the end only.
  constexpr size_t kMoreWords = 80;
  LeftOut left_out{uint64_t{1} << 32, uint64_t{1} << 48, Describe(part)};
  left_out.what.append(kMoreWords, ' ');
  FrameWriter events(std::make_unique<CountedFile>(part.events_bytes), zstd_level());
  FrameWriter payloads(std::make_unique<CountedFile>(part.payloads_bytes));
  const bool has_payloads = part.payloads_bytes != 0;
  if (!WriteEnd(part, left_out, events, has_payloads ? &payloads : nullptr)) return;
  const uint64_t end_of_payloads = has_payloads ? payloads.offset() - part.payloads_bytes : 0;
  Resize(end_bytes_, part.end_bytes, events.offset() - part.events_bytes + end_of_payloads);
  part.end_is_exact = true;
}

uint64_t ReducedCopy::BundleBytes() const {
  uint64_t entries = 0;
  uint64_t names = 0;
  const auto add = [&](const Part& part, std::string_view file) {
    ++entries;
    names += part.name_bytes + file.size();
  };
  for (const Part& part : parts_) {
    add(part, kEventsFile);
    if (part.payloads_bytes != 0) add(part, kPayloadsFile);
  }
  const uint64_t bytes = file_bytes_ + end_bytes_;
  return bytes + ZipOverheadBytes(entries, names, bytes);
}

bool ReducedCopy::MayFit() const {
  return options_.max_bytes == 0 || file_bytes_ <= options_.max_bytes;
}

bool ReducedCopy::Fits() {
  if (options_.max_bytes == 0 || BundleBytes() <= options_.max_bytes) return true;
  if (!MayFit()) return false;
  for (Part& part : parts_)
    if (!part.end_is_exact) FindEndBytes(part);
  return BundleBytes() <= options_.max_bytes;
}

void ReducedCopy::Resize(uint64_t& sum, uint64_t& part, uint64_t size) {
  sum += size - part;
  part = size;
}

void ReducedCopy::Advance(uint64_t bytes) {
  done_ = std::min(total_, done_ + bytes);
  if (options_.progress) options_.progress(done_, total_);
}

}  // namespace deja::format
