#include "format/reader/rank_reader.h"

#include <algorithm>
#include <utility>

#include "common/os/folder_names.h"
#include "format/layout/rank_folder.h"
#include "format/reader/rank_reader_impl.h"

namespace deja::format {

const std::vector<const PayloadTable*>& RankReaderImpl::Tables() const {
  tables_mutex_.lock();
  if (tables_.empty()) FindPeers();
  tables_mutex_.unlock();
  return tables_;
}

void RankReaderImpl::FindPeers() const {
  tables_.push_back(&table_);
  std::vector<const RankReader*> candidates;
  if (peers_) {
    candidates = peers_();
  } else {
    ReadOptions options;
    options.share_descriptors = share_descriptors_;
    options.spill_beyond = spill_beyond_;
    options.spill_folder = spill_folder_;
    const size_t slash = folder_.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : folder_.substr(0, slash);
    for (const RankFolderName& name : ListRankFolderNames(parent)) {
      const std::string folder = parent + "/" + MakeRankFolderName(name.rank, name.attempt);
      if (name.rank == header_.rank && name.attempt == header_.attempt) continue;
      auto neighbour = std::make_unique<RankReaderImpl>(folder, options);
      // Its header alone says whether it is worth reading.
      if (!neighbour->OpenFiles() || !neighbour->LoadHeader() ||
          neighbour->header().shares_with != header_.shares_with) {
        continue;
      }
      if (Result<std::unique_ptr<RankReader>> opened = RankReader::Open(folder, options)) {
        candidates.push_back(opened->get());
        neighbours_.push_back(std::move(*opened));
      }
    }
  }
  for (const RankReader* candidate : candidates) {
    if (candidate == this || candidate->header().shares_with != header_.shares_with) continue;
    tables_.push_back(&candidate->own_payloads());
    peers_read_.push_back(candidate);
  }
}

tl::unexpected<Error> RankReaderImpl::NotThere() const {
  if (left_out_.payloads != 0) {
    return Fail(ErrorCode::kNotFound,
                "the payload was left out when the trace was packed (left out of " +
                    NameInMessages(folder_) + ": " + left_out_.what +
                    "); take the trace that was packed, or pack it again with more");
  }
  return Fail(
      ErrorCode::kNotFound,
      "the payload is not in " + NameInMessages(folder_) +
          (header_.shares_with.empty() ? ""
                                       : " nor in the folders of the ranks that it shares payloads "
                                         "with; list the missing ones with 'deja verify'"));
}

std::optional<uint64_t> RankReaderImpl::SharedSize(const Hash128& hash) const {
  std::optional<uint64_t> total_size;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const PayloadTable* table : Tables()) {
    const std::optional<PayloadTable::Part> part = table->PartOf(hash);
    if (!part) continue;
    if (const std::optional<uint64_t> whole = table->Size(hash)) return whole;
    if (total_size && *total_size != part->total_size) continue;
    total_size = part->total_size;
    ranges.insert(ranges.end(), part->ranges.begin(), part->ranges.end());
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t done = 0;
  for (const auto& [offset, size] : ranges) {
    if (offset > done) return std::nullopt;
    done = std::max(done, offset + size);
  }
  return total_size && done == *total_size ? total_size : std::nullopt;
}

Result<std::unique_ptr<RankReader>> RankReader::Open(const std::string& folder,
                                                     const ReadOptions& options) {
  auto reader = std::make_unique<RankReaderImpl>(folder, options);
  DEJA_RETURN_IF_ERROR(reader->Load(options));
  return std::unique_ptr<RankReader>(std::move(reader));
}

}  // namespace deja::format
