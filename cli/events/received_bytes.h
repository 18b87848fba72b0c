// ReceivedBytes: the bytes that a recorded process received from connections and files, in one
// piece for each of them. A value that is cut into several receipts is found there.
//
// Reads the events and payloads of one process. One thread. Memory: all of these bytes, up to a
// limit; what is beyond it is not there.
#ifndef DEJA_CLI_EVENTS_RECEIVED_BYTES_H_
#define DEJA_CLI_EVENTS_RECEIVED_BYTES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/reader/rank_reader.h"
#include "format/wire/messages.h"

namespace deja::cli {

class ReceivedBytes {
 public:
  // `change`: changes the bytes of a whole stream in place. `path` is a file's; a connection has
  // none.
  using Change = std::function<void(std::string_view path, std::string& bytes)>;
  // Files of more than `most_file` bytes are left out; with `files_only` connections, too.
  struct Limits {
    uint64_t most_file = ~uint64_t{0};
    bool files_only = false;
  };
  ReceivedBytes(const format::RankReader& reader, const Change& change, Limits limits);

  // The bytes after the change; nothing if there are none, or too many.
  using Bytes = std::optional<std::string_view>;
  [[nodiscard]] Bytes OfTransfer(const format::Transfer& transfer) const;
  [[nodiscard]] Bytes OfRange(uint32_t file, uint64_t begin, uint64_t size) const;

 private:
  struct Piece {
    uint64_t at = 0;     // transfers: number; files: offset
    std::string before;  // until they are joined
    size_t size = 0;
    size_t begin = 0;  // in the stream
  };
  struct Stream {
    std::string path;
    std::vector<Piece> pieces;
    std::string bytes;  // of all, after the change
  };

  void Add(Stream& stream, uint64_t at, std::string bytes);
  [[nodiscard]] std::string Read(const format::RankReader& reader, const Hash128& hash);
  static void Join(Stream& stream, bool is_file, const Change& change);
  static Bytes Find(const Stream& stream, uint64_t at, std::optional<uint64_t> size);

  std::map<uint32_t, Stream> connections_;
  std::map<uint32_t, Stream> files_;
  uint64_t bytes_ = 0;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENTS_RECEIVED_BYTES_H_
