#include "cli/events/received_bytes.h"

#include <algorithm>
#include <set>

#include "format/reader/file_ranges.h"

namespace deja::cli {
namespace {

constexpr uint64_t kMostPayload = 256u << 20;
constexpr uint64_t kMostBytes = uint64_t{2} << 30;  // of all streams

}  // namespace

std::string ReceivedBytes::Read(const format::RankReader& reader, const Hash128& hash) {
  const uint64_t size = reader.PayloadSize(hash).value_or(0);
  if (size == 0 || size > kMostPayload || bytes_ + size > kMostBytes) return {};
  std::string bytes(size, '\0');
  const Status read = reader.ReadPayload(hash, std::as_writable_bytes(std::span(bytes)));
  return read ? bytes : std::string();
}

void ReceivedBytes::Add(Stream& stream, uint64_t at, std::string bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  const size_t size = bytes.size();
  stream.pieces.push_back({at, std::move(bytes), size, 0});
}

ReceivedBytes::ReceivedBytes(const format::RankReader& reader, const Change& change,
                             Limits limits) {
  using format::EventKind;
  using format::KindBit;
  std::set<uint32_t> large;
  const auto cursor = reader.Events();
  constexpr uint64_t kKinds = KindBit(EventKind::kTransfer) | KindBit(EventKind::kFileRead) |
                              KindBit(EventKind::kInputFile);
  while (const format::Event* event = cursor->NextOf(kKinds)) {
    if (const auto* transfer = event->As<format::Transfer>()) {
      const bool received =
          transfer->direction == static_cast<uint32_t>(format::TransferKind::kReceived);
      if (limits.files_only || !received || bytes_ + transfer->data.size() > kMostBytes) continue;
      Add(connections_[transfer->connection], transfer->number,
          transfer->hash.IsZero() ? std::string(transfer->data) : Read(reader, transfer->hash));
    } else if (const auto* file = event->As<format::InputFile>()) {
      files_[file->file].path = file->path;
      if (file->size > limits.most_file) large.insert(file->file);
    } else if (const auto* read = event->As<format::FileRead>()) {
      const bool kept = read->payload == static_cast<uint32_t>(format::PayloadState::kKept);
      if (!kept || large.count(read->file) != 0) continue;
      for (const format::FileRange& range : format::RangesOf(*read))
        Add(files_[read->file], range.begin, Read(reader, range.hash));
    }
  }
  for (auto& [number, stream] : connections_) Join(stream, false, change);
  for (auto& [number, stream] : files_) Join(stream, true, change);
}

// Puts what follows one another together, and has it changed. Ranges of a file may overlap; a gap
// ends a piece.
void ReceivedBytes::Join(Stream& stream, bool is_file, const Change& change) {
  std::stable_sort(stream.pieces.begin(), stream.pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.at < b.at; });
  uint64_t end = 0;
  std::string run;
  std::vector<size_t> in_run;
  const auto flush = [&] {
    if (run.empty()) return;
    const size_t base = stream.bytes.size();
    change(stream.path, run);
    for (const size_t i : in_run) stream.pieces[i].begin += base;
    stream.bytes += run;
    run.clear();
    in_run.clear();
  };
  for (size_t i = 0; i < stream.pieces.size(); ++i) {
    Piece& piece = stream.pieces[i];
    if (is_file && piece.at > end) flush();
    const size_t back = is_file && !run.empty() ? static_cast<size_t>(end - piece.at) : 0;
    piece.begin = run.size() - back;
    if (piece.before.size() > back) run += piece.before.substr(back);
    if (is_file) end = std::max(end, piece.at + piece.before.size());
    in_run.push_back(i);
    piece.before = {};
  }
  flush();
}

// A piece of `size` bytes, of any size without it.
ReceivedBytes::Bytes ReceivedBytes::Find(const Stream& stream, uint64_t at,
                                         std::optional<uint64_t> size) {
  auto it = std::lower_bound(stream.pieces.begin(), stream.pieces.end(), at,
                             [](const Piece& piece, uint64_t place) { return piece.at < place; });
  for (; it != stream.pieces.end() && it->at == at; ++it) {
    if (size && it->size != *size) continue;
    return std::string_view(stream.bytes).substr(it->begin, it->size);
  }
  return std::nullopt;
}

ReceivedBytes::Bytes ReceivedBytes::OfTransfer(const format::Transfer& transfer) const {
  const auto it = connections_.find(transfer.connection);
  return it == connections_.end() ? Bytes() : Find(it->second, transfer.number, std::nullopt);
}

ReceivedBytes::Bytes ReceivedBytes::OfRange(uint32_t file, uint64_t begin, uint64_t size) const {
  const auto it = files_.find(file);
  return it == files_.end() ? Bytes() : Find(it->second, begin, size);
}

}  // namespace deja::cli
