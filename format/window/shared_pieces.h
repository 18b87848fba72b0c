// SharedPieces: which pieces of payloads the ranks of one job on one machine keep already.
//
// Ranks get the same bytes again and again: the result of an all-reduce is the same on all of them.
// They share a small table in which a rank claims a piece before it keeps it, so that the others
// need not. Pieces are compared by hash, so a rank whose bytes differ keeps its own. A rank waits
// for another one for a short time only; a rank that cannot use the table keeps everything.
//
// The table is a cache: what it forgets is kept twice, never lost. It lies beside the tails, with a
// name that is removed with theirs, and is not inherited by children.
//
// Owner: RankLog; never unmapped, as threads may use it when the process ends. Any thread, not in
// signal handlers that interrupted it.
#ifndef DEJA_FORMAT_WINDOW_SHARED_PIECES_H_
#define DEJA_FORMAT_WINDOW_SHARED_PIECES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "common/ids.h"

namespace deja::format {

class SharedPieces {
 public:
  // The bytes of a piece; the last one of a payload is shorter.
  static constexpr uint64_t kPieceBytes = 1 << 20;
  // Smaller payloads are not worth it.
  static constexpr uint64_t kLeastBytes = 512;

  // The table of the job in `directory`, made by who comes first. Null if there cannot be one.
  // `copies`: how many ranks keep each piece.
  static std::unique_ptr<SharedPieces> Open(const std::string& directory, const std::string& job_id,
                                            uint32_t copies);

  enum class Claimed {
    kOurs,       // the caller keeps the piece, and says so with Keep() or Release()
    kKept,       // a rank has it
    kElsewhere,  // a rank is about to keep it
  };
  // `key`: pieces under different keys are different ones (PayloadWindow::ShareKey).
  Claimed Claim(const Hash128& hash, uint64_t piece, uint64_t key = 0);
  // It is kept: nothing but a failing disk loses it any more.
  void Keep(const Hash128& hash, uint64_t piece, uint64_t key = 0);
  // It could not be kept.
  void Release(const Hash128& hash, uint64_t piece, uint64_t key = 0);
  // As Claim, but waits a moment for who is about to keep it. kElsewhere: that took too long.
  Claimed Await(const Hash128& hash, uint64_t piece, uint64_t key = 0);

  // This process cannot keep what it has promised: from now on everybody keeps everything.
  void Close();

  // 16 bytes that all who share this table have in common.
  [[nodiscard]] const std::string& id() const { return id_; }
  // Where to begin, so that ranks that keep the same payload at the same time take different
  // pieces.
  [[nodiscard]] uint64_t FirstPiece(uint64_t pieces) const;

 private:
  struct Header;
  struct Set;

  SharedPieces() = default;
  [[nodiscard]] uint64_t TagOf(const Hash128& hash, uint64_t piece, uint64_t key, Set*& set) const;
  static std::atomic<uint64_t>* Find(Set& set, uint64_t tag);

  Header* header_ = nullptr;
  Set* sets_ = nullptr;
  std::string id_;
  uint64_t member_ = 0;
  uint64_t group_ = 0;  // ranks of different groups do not share
};

// The table's name in the folder of the tails.
std::string SharedPiecesName(const std::string& job_id);

}  // namespace deja::format

#endif  // DEJA_FORMAT_WINDOW_SHARED_PIECES_H_
