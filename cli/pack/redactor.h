// Redactor: a trace without what says where and by whom it was recorded, for `deja pack --redact`.
//
// Hosts, users, paths and addresses become stand-ins (StandIns); values of the environment stay
// where their names are known to say nothing (AllowedVariable), or they are numbers; secrets are
// masked in all that is text, also in bytes that were received and read. Everything keeps its
// length, so that a replay is given what fits. What the program sends is not compared any more, nor
// are tensors of bytes that it makes: they may hold what is a stand-in now.
//
// Memory: what was received and read, of one process at a time, and all payloads that are changed.
#ifndef DEJA_CLI_PACK_REDACTOR_H_
#define DEJA_CLI_PACK_REDACTOR_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/events/received_bytes.h"
#include "cli/pack/stand_ins.h"
#include "common/secrets/secrets.h"
#include "format/pack/trace_rewriter.h"
#include "format/trace/payload_uses.h"

namespace deja::cli {

class Redactor final : public format::TraceRewriter {
 public:
  // `keep`: patterns of names of variables whose values stay, besides the known ones. `mask`:
  // patterns of names of variables whose values are always masked. The texts are borrowed.
  Redactor(std::string_view keep, std::string_view mask) : rule_(keep, mask) {}

  Status Learn(const format::RankReader& reader) override;
  Status Settle() override;
  void Begin(const format::RankReader& reader) override;
  void Rewrite(format::TraceHeader& header) override;
  void Rewrite(format::Event& event) override;
  [[nodiscard]] std::vector<Hash128> ReplacementsOf(const Hash128& hash) const override;
  [[nodiscard]] std::span<const std::byte> BytesOf(const Hash128& hash) const override;

  [[nodiscard]] const StandIns& stand_ins() const { return names_; }

 private:
  // What of an event is rewritten; each returns whether it was.
  bool RewriteBody(format::CallEnter& enter);
  bool RewriteBody(format::CallLeave& leave);
  bool RewriteBody(format::CallResults& results);
  bool RewriteBody(format::Input& input);
  bool RewriteBody(format::Snapshot& snapshot);
  bool RewriteBody(format::Note& note);
  bool RewriteBody(format::CommCreated& comm);
  bool RewriteBody(format::ModuleLoaded& module);
  bool RewriteBody(format::Degraded& degraded);
  bool RewriteBody(format::WindowChange& change);
  bool RewriteBody(format::InputFile& file);
  bool RewriteBody(format::FileRead& read);
  bool RewriteBody(format::ConnectionOpened& connection);
  bool RewriteBody(format::Transfer& transfer);
  bool RewriteBody(format::ProcessExit& exit);
  bool RewriteBody(format::Child& child);
  template <typename Body>
  bool RewriteBody(Body&) {
    return false;
  }

  void LearnHeader(const format::TraceHeader& header);
  void LearnEvent(const format::Event& event);
  void LearnIds(std::string_view blob);
  std::string_view Keep(std::string text);  // until the next event
  bool Text(std::string_view& text);        // names and secrets in a text
  bool Path(std::string_view& path);
  bool Bytes(std::string_view& bytes);  // the same in bytes that hold anything
  bool SocketAddress(std::string_view& address);
  bool RedactBytes(std::span<char> bytes);
  bool RewriteTensor(format::Tensor& tensor);
  bool RewriteEntries(format::InputFile& file);
  bool RewriteArguments(std::string_view& arguments);
  // The payload that is kept for these bytes instead of `hash`.
  Hash128 Replace(const Hash128& hash, std::string_view bytes);
  void KeepAsItIs(const Hash128& hash) { replacements_[hash].insert(hash); }
  void LeaveOut(const Hash128& hash) { replacements_.try_emplace(hash); }
  std::string ReadPayload(const Hash128& hash) const;
  std::string Variable(std::string_view entry, std::string_view& rule);

  SecretRule rule_;
  StandIns names_;
  const format::RankReader* reader_ = nullptr;
  std::unique_ptr<ReceivedBytes> received_;  // of the process that is being rewritten
  std::deque<std::string> header_texts_;
  std::deque<std::string> event_texts_;
  std::unordered_map<Hash128, std::set<Hash128>, format::HashOfHash> replacements_;
  std::unordered_map<Hash128, std::string, format::HashOfHash> made_;
};

// True if a redacted bundle keeps the values of a variable with this name. These are the variables
// of launchers, libraries and the shell that a replay and a reader of a report need.
bool IsAllowedVariable(std::string_view name);

}  // namespace deja::cli

#endif  // DEJA_CLI_PACK_REDACTOR_H_
