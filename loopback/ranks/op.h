// Operations in flight, and what drives them.
//
// An Op is one collective, one send or receive, or the making of one communicator, cut into steps
// that never block. RunOps drives any number of them together until all are done, so that the order
// in which a group lists them cannot deadlock. An Op belongs to the thread that runs it.
#ifndef DEJA_LOOPBACK_RANKS_OP_H_
#define DEJA_LOOPBACK_RANKS_OP_H_

#include <memory>
#include <vector>

#include "loopback/ranks/comm.h"
#include "loopback/ranks/progress.h"

namespace deja::loopback {

class Op {
 public:
  Op(ncclComm* comm, const char* name) : comm_(comm), name_(name) {}
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  // Goes on as far as it can without waiting. Must not be called again after kDone.
  virtual Progress Step() = 0;
  // Called once, after kDone or when the operation is given up.
  virtual void Close() {}
  // Called once, when all operations that ran with it are closed and no thread is in them.
  virtual void Settle() {}
  // Whether it cannot go on without `peer`. Only asked while it is blocked.
  [[nodiscard]] virtual bool Awaits(int peer) const = 0;
  // Whether it waits for something that rings no doorbell.
  [[nodiscard]] virtual bool MustPoll() const { return false; }
  // Whether it may go on when the communicator was revoked or its use has ended in an error.
  [[nodiscard]] virtual bool SurvivesFailure() const { return false; }

  // The communicator whose ranks it waits for; may change, and have no area yet.
  [[nodiscard]] ncclComm* comm() const { return comm_; }
  [[nodiscard]] const char* name() const { return name_; }
  [[nodiscard]] ncclResult_t result() const { return result_; }
  void set_result(ncclResult_t result) { result_ = result; }
  // A rank whose end was noticed while this operation needed it, or -1.
  [[nodiscard]] int missing() const { return missing_; }
  void set_missing(int peer) { missing_ = peer; }

 protected:
  void set_comm(ncclComm* comm) { comm_ = comm; }

 private:
  ncclComm* comm_;
  const char* name_;
  ncclResult_t result_ = ncclSuccess;
  int missing_ = -1;
};

using OpList = std::vector<std::unique_ptr<Op>>;

// Runs all of them to their end. Returns the first error in the order of the list; each op has its
// own in result(). An error breaks the op's communicator.
ncclResult_t RunOps(OpList& ops);

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_OP_H_
