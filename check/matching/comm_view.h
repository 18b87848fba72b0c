// CommView: the members of one communicator whose recordings are whole, and the words that findings
// about its collectives share.
//
// Borrows the job. Const; any thread.
#ifndef DEJA_CHECK_MATCHING_COMM_VIEW_H_
#define DEJA_CHECK_MATCHING_COMM_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "check/evidence/job.h"
#include "check/matching/finding.h"

namespace deja::check {

// Members whose calls at one number fit each other.
struct Class {
  std::vector<Member> members;
  [[nodiscard]] const Member& First() const { return members.front(); }
};

class CommView {
 public:
  CommView(const Job& job, const Communicator& communicator);

  [[nodiscard]] const Job& job() const { return job_; }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  // All ranks of it are in the trace, with all their events.
  [[nodiscard]] bool IsWhole() const;
  [[nodiscard]] std::string Name() const { return job_.NameOf(communicator_); }

  [[nodiscard]] const CallList& CallsOf(const Member& member) const {
    return job_.CommOf(member).collectives;
  }
  [[nodiscard]] const Call& CallAt(const Member& member, size_t index) const {
    return CallsOf(member)[index];
  }
  // Facts about the call at `index` among the collectives of the communicator, from 1.
  [[nodiscard]] size_t NumberAt(size_t index) const {
    return index + 1 + job_.CommOf(members_.front()).left_out;
  }
  [[nodiscard]] bool FitAt(const Member& a, const Member& b, size_t index) const;
  // The first number at which the calls of two members do not fit; SIZE_MAX: there is none.
  [[nodiscard]] size_t FirstThatDoesNotFit() const;
  // By what they call at `index`, the largest first; of equal ones that with the lower rank.
  [[nodiscard]] std::vector<Class> ClassesAt(size_t index) const;

  // Ascending numbers of ranks.
  [[nodiscard]] std::vector<uint32_t> Numbers(const std::vector<Member>& members) const;
  // A finding about the collective `index`, with what all did alike before it.
  [[nodiscard]] Finding Begin(Kind kind, size_t index) const;
  // All members that are not to blame.
  void AddWaiting(Finding& finding) const;
  [[nodiscard]] Side SideOfClass(const Class& one, size_t index) const;

 private:
  const Job& job_;
  const Communicator& communicator_;
  std::vector<Member> members_;
};

}  // namespace deja::check

#endif  // DEJA_CHECK_MATCHING_COMM_VIEW_H_
