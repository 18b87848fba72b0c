// The fuzz targets of texts and of files of the command line's; Targets() has them all.
#ifndef DEJA_TESTS_FUZZ_MORE_TARGETS_H_
#define DEJA_TESTS_FUZZ_MORE_TARGETS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deja::format::fuzz {

// A property that does not hold ends the process: that is how libFuzzer learns of it.
void Check(bool holds, const char* what);

inline std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::vector<std::byte> BytesOfText(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// What a killed process leaves in shared memory, with some bytes changed.
void RunTail(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> TailSeeds();
// A rank's folder, completed: what comes of it is finished and can be read.
void RunRecovery(std::span<const std::byte> bytes);
// Names and notes that a trace has, what an option is given, what a terminal is shown.
void RunTexts(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> TextSeeds();
// Masks of secrets.
void RunSecrets(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> SecretSeeds();
// Stand-ins of names in redacted bundles.
void RunStandIns(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> StandInSeeds();
// The report that a replayed program may damage.
void RunReport(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> ReportSeeds();
// Recorded or named programs and modules.
void RunPrograms(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> ProgramSeeds();
// A bundle in parts.
void RunParts(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> PartSeeds();
// What is known to be one's own, or agreed to.
void RunTrust(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> TrustSeeds();
// Programs, arguments and folders by which a replay may read: three lines; ~ is the home folder.
void RunReadRules(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> ReadRuleSeeds();
// Packages, modules and libraries of a recorded program; readers of folders in little memory.
void RunInventory(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> InventorySeeds();
// What `deja check` keeps beside a rank's recording.
void RunSummary(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> SummarySeeds();
// A dump of PyTorch's Flight Recorder, pickled or JSON, and the trace that is made of it.
void RunFlightDump(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> FlightDumpSeeds();
// A whole trace, redacted.
void RunRedactor(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> RedactorSeeds();
// Events in words, and what `deja info` and `deja top` say of a rank.
void RunEvents(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> EventSeeds();
// Findings of `deja check`, exports, the page of a report.
void RunEvidence(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> EvidenceSeeds();
// Two recordings compared.
void RunDifference(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> DifferenceSeeds();
// The plan of a replay.
void RunPlan(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> PlanSeeds();
// Requests to `deja serve`.
void RunServe(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> ServeSeeds();
// Lists in a replay's scratch folder, the file of a job, marks.
void RunLists(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> ListSeeds();
// ELF and DWARF of a recorded program.
void RunSymbols(std::span<const std::byte> bytes);
std::vector<std::vector<std::byte>> SymbolSeeds();

}  // namespace deja::format::fuzz

#endif  // DEJA_TESTS_FUZZ_MORE_TARGETS_H_
