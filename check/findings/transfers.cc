// pairing: sends and receives of one communicator, by who sends to whom and their order.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

struct Channel {
  std::vector<const Transfer*> sends;
  std::vector<const Transfer*> receives;
};

// From, to, tag: ranks in the communicator.
using Channels = std::map<std::tuple<int64_t, int64_t, int64_t>, Channel>;

class TransferMatcher {
 public:
  TransferMatcher(const Job& job, const Communicator& communicator, Found& found)
      : job_(job), communicator_(communicator), found_(found) {}

  void Match() {
    for (const Member& member : communicator_.members) {
      if (job_.RankOf(member).is_partial) return;
      for (const Transfer& transfer : job_.CommOf(member).transfers) Add(member, transfer);
    }
    // A channel's difference follows from the first one in time.
    std::vector<Finding> findings;
    for (auto& [key, channel] : channels_) {
      const auto [from, to, tag] = key;
      if (from_any_.count(to) != 0) continue;
      LeaveOutGivenUp(from, to, channel);
      if (auto finding = MatchChannel(from, to, channel)) findings.push_back(std::move(*finding));
    }
    const auto first =
        std::min_element(findings.begin(), findings.end(),
                         [](const Finding& a, const Finding& b) { return a.time_ns < b.time_ns; });
    if (first != findings.end()) found_.findings.push_back(std::move(*first));
  }

 private:
  void Add(const Member& member, const Transfer& transfer) {
    const int64_t own = job_.CommOf(member).rank;
    members_[own] = member;
    switch (job_.signatures[transfer.signature].operation) {
      case Operation::kSend:
        channels_[{own, transfer.peer, transfer.tag}].sends.push_back(&transfer);
        break;
      case Operation::kRecv:
        channels_[{transfer.peer, own, transfer.tag}].receives.push_back(&transfer);
        break;
      default:  // from any: which send it got is known of those that are done alone
        from_any_.insert(own);
    }
  }

  static Finding Begin(const Job& job, const Communicator& communicator, const Transfer& at) {
    Finding finding;
    finding.kind = Kind::kPairing;
    finding.comm = job.NameOf(communicator);
    finding.members = job.RanksOf(communicator);
    finding.step = at.step;
    finding.time_ns = at.time_ns;
    return finding;
  }

  // A transfer that failed was given up if its rank went on to a good end. The other side need not
  // have made one.
  void LeaveOutGivenUp(int64_t from, int64_t to, Channel& channel) {
    const bool has_more_sends = channel.sends.size() > channel.receives.size();
    std::vector<const Transfer*>& more = has_more_sends ? channel.sends : channel.receives;
    size_t excess = more.size() - std::min(channel.sends.size(), channel.receives.size());
    const auto member = members_.find(has_more_sends ? from : to);
    if (member == members_.end() || !job_.RankOf(member->second).end.Well()) return;
    std::erase_if(more, [&](const Transfer* transfer) {
      const bool leave_out = excess != 0 && transfer->Is(kFailed);
      excess -= leave_out ? 1 : 0;
      return leave_out;
    });
  }

  // Calls that were refused on both sides are no message.
  bool AreGivenUp(int64_t from, const Transfer& send, int64_t to, const Transfer& receive) {
    return send.Is(kFailed) && receive.Is(kFailed) && job_.RankOf(members_[from]).end.Well() &&
           job_.RankOf(members_[to]).end.Well();
  }

  std::optional<Finding> MatchChannel(int64_t from, int64_t to, const Channel& channel) {
    if (members_.count(from) == 0 || members_.count(to) == 0) return std::nullopt;
    const size_t pairs = std::min(channel.sends.size(), channel.receives.size());
    for (size_t i = 0; i < pairs; ++i) {
      const Signature& sent = job_.signatures[channel.sends[i]->signature];
      const Signature& received = job_.signatures[channel.receives[i]->signature];
      const bool fits = sent.dtype == received.dtype && sent.count == received.count;
      if (!fits && !AreGivenUp(from, *channel.sends[i], to, *channel.receives[i]))
        return Unequal(from, to, *channel.sends[i], *channel.receives[i], i);
    }
    return channel.sends.size() == channel.receives.size() ? std::nullopt
                                                           : Alone(from, to, channel, pairs);
  }

  Finding Unequal(int64_t from, int64_t to, const Transfer& send, const Transfer& receive,
                  size_t index) {
    Finding finding = Begin(job_, communicator_, send);
    const Side sender = SideOf(job_, members_[from], send);
    const Side receiver = SideOf(job_, members_[to], receive);
    finding.number = 0;
    finding.blamed = {sender.ranks.front(), receiver.ranks.front()};
    std::sort(finding.blamed.begin(), finding.blamed.end());
    finding.sentence = fmt::format(
        "on {} the {} of rank {} to rank {}{} meets a {}{}: message {} between the two does not "
        "fit",
        finding.comm, sender.what, sender.ranks.front(), receiver.ranks.front(),
        job_.AtSite(send.site), receiver.what, job_.AtSite(receive.site), index + 1);
    finding.sides = {sender, receiver};
    finding.next = {ShowCommand(sender), ShowCommand(receiver)};
    return finding;
  }

  // One side is missing. That is one when the other waited for it, or when both ended well: no more
  // can come.
  std::optional<Finding> Alone(int64_t from, int64_t to, const Channel& channel, size_t pairs) {
    const bool is_send = channel.sends.size() > pairs;
    const Transfer& transfer = *(is_send ? channel.sends : channel.receives)[pairs];
    const Member& own = members_[is_send ? from : to];
    const Member& other = members_[is_send ? to : from];
    const RankSummary& other_rank = job_.RankOf(other);
    const bool both_ended_well = job_.RankOf(own).end.Well() && other_rank.end.Well();
    // A rank that is waiting elsewhere, or that died, is another kind's finding.
    const bool may_still_come = !other_rank.end.Well();
    if (!both_ended_well && (may_still_come || !WaitsIn(transfer))) return std::nullopt;
    Finding finding = Begin(job_, communicator_, transfer);
    const Side side = SideOf(job_, own, transfer);
    finding.blamed = {other_rank.rank};
    finding.sides = {StandingOf(job_, other.rank), side};
    finding.sentence = fmt::format(
        "the {} of rank {} {} rank {} on {}{} has no {}: {} {}", side.what, side.ranks.front(),
        is_send ? "to" : "from", other_rank.rank, finding.comm, job_.AtSite(transfer.site),
        is_send ? "receive" : "send", is_send ? "received" : "sent", Messages(pairs));
    if (WaitsIn(transfer)) finding.waiting = side.ranks;
    finding.next = {ShowCommand(side),
                    fmt::format("show RUN --rank {} --last 20 --stacks", other_rank.rank)};
    return finding;
  }

  static std::string Messages(size_t pairs) {
    if (pairs == 0) return "none";
    return pairs == 1 ? "only one message" : fmt::format("only {} messages", pairs);
  }

  const Job& job_;
  const Communicator& communicator_;
  Found& found_;
  Channels channels_;
  std::map<int64_t, Member> members_;  // by their rank in the communicator
  std::set<int64_t> from_any_;         // ranks that receive from any
};

}  // namespace

void MatchTransfers(const Job& job, Found& found) {
  for (const Communicator& communicator : job.communicators)
    if (communicator.IsWhole()) TransferMatcher(job, communicator, found).Match();
}

}  // namespace deja::check
