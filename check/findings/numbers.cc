// nan-origin, replica, corrupt: what digests of inputs and results show.
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

std::vector<uint32_t> SortedRanks(const Job& job, const std::vector<Member>& members) {
  std::set<uint32_t> numbers;
  for (const Member& member : members) numbers.insert(job.NumberOf(member));
  return {numbers.begin(), numbers.end()};
}

Finding BeginAt(const Job& job, const Communicator& communicator, Kind kind, size_t index,
                const Call& call) {
  Finding finding;
  finding.kind = kind;
  finding.comm = job.NameOf(communicator);
  finding.members = job.RanksOf(communicator);
  finding.number = index + 1 + job.CommOf(communicator.members.front()).left_out;
  finding.step = call.step;
  finding.time_ns = call.time_ns;
  return finding;
}

void AddCommandsOf(Finding& finding) {
  for (size_t i = 0; i < finding.sides.size() && i < 2; ++i)
    finding.next.push_back(ShowCommand(finding.sides[i]));
  if (!finding.blamed.empty()) finding.next.push_back(ReplayCommand(finding.blamed.front()));
}

// ---- nan-origin

// The first call of a rank that read or wrote something that is not finite.
struct FirstBad {
  size_t communicator = 0;
  size_t index = 0;
  const Call* call = nullptr;
};

bool HasNan(const Call& call) {
  return call.Is(kNanIn) || call.Is(kNanOut);
}

// The first collective of all in time; transfers carry on what collectives or ranks have made.
std::optional<FirstBad> FindFirst(const Job& job, bool (*is_bad)(const Call&)) {
  std::optional<FirstBad> first;
  for (size_t c = 0; c < job.communicators.size(); ++c) {
    for (const Member& member : job.communicators[c].members) {
      const CallList& calls = job.CommOf(member).collectives;
      const auto bad = std::find_if(calls.begin(), calls.end(), is_bad);
      if (bad == calls.end() || (first && first->call->time_ns <= bad->time_ns)) continue;
      first = FirstBad{c, bad.index(), &*bad};
    }
  }
  return first;
}

// A transfer with one before `time_ns`, and on which rank.
std::optional<Member> FirstSender(const Job& job, uint64_t time_ns, const Transfer*& found) {
  std::optional<Member> sender;
  for (const Communicator& communicator : job.communicators) {
    for (const Member& member : communicator.members) {
      for (const Transfer& transfer : job.CommOf(member).transfers) {
        if (!HasNan(transfer) || transfer.time_ns >= time_ns) continue;
        time_ns = transfer.time_ns;
        found = &transfer;
        sender = member;
        break;
      }
    }
  }
  return sender;
}

void AddTransferOrigin(const Job& job, const Transfer& transfer, const Member& member,
                       Found& found) {
  Finding finding;
  finding.kind = Kind::kNanOrigin;
  finding.step = transfer.step;
  finding.time_ns = transfer.time_ns;
  const bool produced = transfer.Is(kNanIn);
  Side side = SideOf(job, member, transfer);
  finding.comm = fmt::format("comm {}", job.CommOf(member).number);
  finding.blamed = side.ranks;
  finding.sentence = fmt::format(
      "the first NaN is in {} {} of {}, {}{}", produced ? "the input of" : "the result of",
      side.what, RanksText(side.ranks),
      produced ? "which made it itself" : "whose sender's input is not known to have one",
      job.AtSite(transfer.site));
  finding.sides = {side};
  AddCommandsOf(finding);
  found.findings.push_back(std::move(finding));
}

}  // namespace

void MatchNans(const Job& job, Found& found) {
  const auto first = FindFirst(job, HasNan);
  const Transfer* transfer = nullptr;
  const auto sender = FirstSender(job, first ? first->call->time_ns : ~uint64_t{0}, transfer);
  if (sender) return AddTransferOrigin(job, *transfer, *sender, found);
  if (!first) return;
  const Communicator& communicator = job.communicators[first->communicator];
  std::vector<Member> made;
  std::vector<Member> received;
  for (const Member& member : communicator.members) {
    const CallList& calls = job.CommOf(member).collectives;
    if (calls.size() <= first->index) continue;
    if (calls[first->index].Is(kNanIn))
      made.push_back(member);
    else if (calls[first->index].Is(kNanOut))
      received.push_back(member);
  }
  const bool is_local = !made.empty();
  const std::vector<Member>& origin = is_local ? made : received;
  if (origin.empty()) return;
  const Call& call = job.CommOf(origin.front()).collectives[first->index];
  Finding finding = BeginAt(job, communicator, Kind::kNanOrigin, first->index, call);
  finding.blamed = SortedRanks(job, origin);
  Side side = SideOf(job, origin.front(), call);
  side.ranks = finding.blamed;
  finding.sides.push_back(side);
  const std::string step = call.step == kNoStep ? "" : fmt::format(", in step {}", call.step);
  if (is_local)
    finding.sentence =
        fmt::format("the first NaN is in the input of {} on {}: {} made it{}{}", side.what,
                    finding.comm, RanksText(finding.blamed), job.AtSite(call.site), step);
  else
    finding.sentence = fmt::format(
        "the first NaN is in the result of {} on {}: no input that is known has one, so the "
        "reduction made it{}{}",
        side.what, finding.comm, job.AtSite(call.site), step);
  for (const Member& member : communicator.members) {
    const uint32_t rank = job.NumberOf(member);
    if (!std::binary_search(finding.blamed.begin(), finding.blamed.end(), rank))
      finding.waiting.push_back(rank);
  }
  if (is_local && !received.empty())
    finding.evidence.push_back(
        fmt::format("{} received it in this operation", RanksText(SortedRanks(job, received))));
  const auto infinite = FindFirst(job, [](const Call& one) { return one.Is(kInfIn); });
  if (infinite && infinite->call->time_ns < call.time_ns)
    finding.evidence.push_back(fmt::format("an infinity was there before it: {} #{} of {}{}",
                                           job.SignatureText(*infinite->call), infinite->call->seq,
                                           job.NameOf(job.communicators[infinite->communicator]),
                                           job.AtSite(infinite->call->site)));
  AddCommandsOf(finding);
  found.findings.push_back(std::move(finding));
}

// ---- replica, corrupt

namespace {

class ResultMatcher {
 public:
  ResultMatcher(const Job& job, const Communicator& communicator, size_t comparable, Found& found)
      : job_(job), communicator_(communicator), found_(found), comparable_(comparable) {}

  void Match() {
    size_t size = 0;
    for (const Member& member : communicator_.members)
      size = std::max(size, job_.CommOf(member).collectives.size());
    for (size_t i = 0; i < std::min(size, comparable_); ++i)
      if (Compare(i)) return;
  }

 private:
  // What a member has when the call is done: the root of torch's broadcast has its input.
  static uint64_t ValueOf(const Signature& signature, const Call& call, bool is_root) {
    if (call.Is(kRepeated) || call.Is(kFailed)) return 0;
    if (signature.operation == Operation::kBroadcast && is_root) return call.input;
    return call.output;
  }

  bool Compare(size_t index) {
    const Signature* signature = nullptr;
    std::map<uint64_t, std::vector<Member>> values;
    uint64_t sent = 0;
    for (const Member& member : communicator_.members) {
      const CallList& calls = job_.CommOf(member).collectives;
      // The n-th of a rank with missing events may be another one.
      if (calls.size() <= index || job_.RankOf(member).is_partial) continue;
      const Call& call = calls[index];
      signature = &job_.signatures[call.signature];
      if (!HasEqualResults(signature->operation)) return false;
      const bool is_root = signature->root == static_cast<int64_t>(job_.CommOf(member).rank);
      const uint64_t value = ValueOf(*signature, call, is_root);
      if (signature->operation == Operation::kBroadcast && is_root) sent = value;
      if (value != 0) values[value].push_back(member);
    }
    if (values.size() < 2) return false;
    Add(*signature, index, values, sent);
    return true;
  }

  void Add(const Signature& signature, size_t index,
           const std::map<uint64_t, std::vector<Member>>& values, uint64_t sent) {
    // The right bytes are the root's, or else those of most ranks.
    uint64_t right = sent;
    size_t most = 0;
    for (const auto& [value, members] : values)
      if (sent == 0 && members.size() > most) right = value, most = members.size();
    std::vector<Member> wrong;
    for (const auto& [value, members] : values)
      if (value != right) wrong.insert(wrong.end(), members.begin(), members.end());
    const bool is_copy = signature.operation != Operation::kAllReduce;
    const Call& call = job_.CommOf(wrong.front()).collectives[index];
    Finding finding =
        BeginAt(job_, communicator_, is_copy ? Kind::kCorrupt : Kind::kReplica, index, call);
    finding.blamed = SortedRanks(job_, wrong);
    const std::vector<Member>& good = values.at(right);
    const bool is_even = sent == 0 && good.size() == wrong.size();
    Side bad_side = SideOf(job_, wrong.front(), call);
    bad_side.ranks = finding.blamed;
    Side good_side = SideOf(job_, good.front(), job_.CommOf(good.front()).collectives[index]);
    good_side.ranks = SortedRanks(job_, good);
    finding.waiting = good_side.ranks;
    finding.sentence = fmt::format(
        "the result of {} on {} must be the same on all ranks: {} {} other bytes than {}{}{}",
        bad_side.what, finding.comm, RanksText(finding.blamed),
        finding.blamed.size() == 1 ? "has" : "have", RanksText(good_side.ranks),
        job_.AtSite(call.site),
        is_even ? "; which of them are right is not known"
                : (sent != 0 ? "; the root sent what the others have" : ""));
    for (const auto& [value, members] : values)
      finding.evidence.push_back(fmt::format("{:016x} on {}", __builtin_bswap64(value),
                                             RanksText(SortedRanks(job_, members))));
    finding.sides = {bad_side, good_side};
    AddCommandsOf(finding);
    found_.findings.push_back(std::move(finding));
  }

  const Job& job_;
  const Communicator& communicator_;
  Found& found_;
  size_t comparable_;
};

// A receive has the bytes that its send had.
void MatchCopies(const Job& job, const Communicator& communicator, Found& found) {
  using Channel = std::tuple<int64_t, int64_t, int64_t>;  // from, to, tag
  std::map<Channel, std::vector<std::pair<Member, const Transfer*>>> sends;
  // One of their transfers failed: which of the others belong together is not known.
  std::set<Channel> unknown;
  for (const Member& member : communicator.members) {
    const CommSummary& comm = job.CommOf(member);
    if (job.RankOf(member).is_partial) return;
    for (const Transfer& transfer : comm.transfers) {
      const Operation operation = job.signatures[transfer.signature].operation;
      // Which messages the others get is not known then.
      if (operation == Operation::kRecvAnySource) return;
      const bool sends_it = operation == Operation::kSend;
      if (transfer.Is(kFailed))
        unknown.insert({sends_it ? comm.rank : transfer.peer, sends_it ? transfer.peer : comm.rank,
                        transfer.tag});
      if (operation == Operation::kSend)
        sends[{comm.rank, transfer.peer, transfer.tag}].emplace_back(member, &transfer);
    }
  }
  for (const Member& member : communicator.members) {
    const CommSummary& comm = job.CommOf(member);
    std::map<std::pair<int64_t, int64_t>, size_t> counts;
    for (const Transfer& receive : comm.transfers) {
      if (job.signatures[receive.signature].operation != Operation::kRecv) continue;
      const size_t index = counts[{receive.peer, receive.tag}]++;
      const auto channel = sends.find({receive.peer, comm.rank, receive.tag});
      if (channel != sends.end() && unknown.count(channel->first) != 0) continue;
      if (channel == sends.end() || channel->second.size() <= index) continue;
      const auto& [from, send] = channel->second[index];
      const Signature& sent = job.signatures[send->signature];
      const Signature& got = job.signatures[receive.signature];
      if (sent.count != got.count || sent.dtype != got.dtype) break;
      const bool known =
          send->input != 0 && receive.output != 0 && !send->Is(kRepeated) && !receive.Is(kRepeated);
      if (!known || send->input == receive.output) continue;
      Finding finding;
      finding.kind = Kind::kCorrupt;
      finding.comm = job.NameOf(communicator);
      finding.members = job.RanksOf(communicator);
      finding.step = receive.step;
      finding.time_ns = receive.time_ns;
      const Side receiver = SideOf(job, member, receive);
      const Side sender = SideOf(job, from, *send);
      finding.blamed = receiver.ranks;
      finding.waiting = sender.ranks;
      finding.sentence =
          fmt::format("{} of {} on {}{} has other bytes than {} of {}{} sent", receiver.what,
                      RanksText(receiver.ranks), finding.comm, job.AtSite(receive.site),
                      sender.what, RanksText(sender.ranks), job.AtSite(send->site));
      finding.sides = {receiver, sender};
      AddCommandsOf(finding);
      found.findings.push_back(std::move(finding));
      return;
    }
  }
}

// Registered tensors that changed alike on all ranks from one checkpoint to another were replicas:
// they must stay so.
void MatchStates(const Job& job, Found& found) {
  struct State {
    std::map<size_t, const StateDigest*> of_ranks;
  };
  std::map<std::string, std::map<uint64_t, State>> states;  // by name, step
  for (size_t r = 0; r < job.ranks.size(); ++r)
    for (const StateDigest& state : job.ranks[r].states)
      states[state.name][state.step].of_ranks[r] = &state;
  std::optional<Finding> first;
  for (const auto& [name, by_step] : states) {
    std::set<uint64_t> agreed;  // digests that all had
    uint64_t last_agreed = kNoStep;
    for (const auto& [step, state] : by_step) {
      if (state.of_ranks.size() != job.ranks.size()) break;
      std::map<uint64_t, std::vector<uint32_t>> values;
      for (const auto& [rank, digest] : state.of_ranks)
        values[digest->digest].push_back(job.ranks[rank].rank);
      if (values.size() == 1) {
        agreed.insert(values.begin()->first);
        last_agreed = step;
        continue;
      }
      const auto most = std::max_element(
          values.begin(), values.end(),
          [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      // A tensor of each rank's own never changes alike on two ranks. It was a replica if most
      // still do, or if all did several times.
      const bool most_change_alike = most->second.size() * 2 > job.ranks.size() &&
                                     most->second.size() > 1 && agreed.count(most->first) == 0;
      constexpr size_t kSeveral = 3;
      if (agreed.size() < kSeveral && (agreed.empty() || !most_change_alike)) break;
      Finding finding;
      finding.kind = Kind::kReplica;
      finding.step = step;
      finding.time_ns = state.of_ranks.begin()->second->time_ns;
      for (const auto& [value, ranks] : values)
        if (value != most->first)
          finding.blamed.insert(finding.blamed.end(), ranks.begin(), ranks.end());
      std::sort(finding.blamed.begin(), finding.blamed.end());
      finding.waiting = most->second;
      finding.sentence = fmt::format(
          "\"{}\" was the same on all ranks up to the checkpoint at step {} and is not at step {}: "
          "{} {} from {}",
          name, last_agreed, step, RanksText(finding.blamed),
          finding.blamed.size() == 1 ? "differs" : "differ", RanksText(most->second));
      for (const auto& [value, ranks] : values)
        finding.evidence.push_back(
            fmt::format("{:016x} on {}", __builtin_bswap64(value), RanksText(ranks)));
      finding.next = {fmt::format("show RUN --rank {} --step {}-{} --kind enter,snapshot",
                                  finding.blamed.front(), last_agreed, step),
                      ReplayCommand(finding.blamed.front())};
      if (!first || finding.time_ns < first->time_ns) first = std::move(finding);
      break;
    }
  }
  if (first) found.findings.push_back(std::move(*first));
}

}  // namespace

void MatchResults(const Job& job, Found& found) {
  for (size_t c = 0; c < job.communicators.size(); ++c) {
    const Communicator& communicator = job.communicators[c];
    if (communicator.is_ambiguous) continue;
    ResultMatcher(job, communicator, found.comparable[c], found).Match();
    if (communicator.IsWhole()) MatchCopies(job, communicator, found);
  }
  MatchStates(job, found);
}

}  // namespace deja::check
