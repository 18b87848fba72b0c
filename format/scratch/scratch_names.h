// Names in the scratch folder of a replay that both the command line and the replay library use.
// They are appended to the folder's path.
#ifndef DEJA_FORMAT_SCRATCH_SCRATCH_NAMES_H_
#define DEJA_FORMAT_SCRATCH_SCRATCH_NAMES_H_

namespace deja::format {

// The report, one line for each thing that the library reports (report_lines.def).
inline constexpr char kReportFile[] = "/report.jsonl";

// A replay that is held goes on when this file is there.
inline constexpr char kGoOnFile[] = "/go-on";

// Lists of processes (process_list.h): the rank's children, and those of other ranks that its first
// process forked.
inline constexpr char kChildrenFile[] = "/children";
inline constexpr char kCompanionsFile[] = "/companions";

// The names that the rank and its children made (created_names.h).
inline constexpr char kCreatedFile[] = "/created";

// The folder where folded ranks meet, and lists in it (fold_files.h).
inline constexpr char kFoldFolder[] = "/fold";
inline constexpr char kFoldCommsFile[] = "/comms";
inline constexpr char kFoldResultsFile[] = "/others_results";

// For a replay that shows one child alone (deja replay --child). FIFOs by number of descriptor, 1
// and 2. The rank starts with the first pair, whose bytes are dropped; the child puts the second
// pair in its place.
inline constexpr const char* kDroppedOutputs[] = {"/dropped-stdout", "/dropped-stderr"};
inline constexpr const char* kShownOutputs[] = {"/shown-stdout", "/shown-stderr"};

// The process number of the child, which waits until a debugger is attached to it.
inline constexpr char kWaitsForDebugger[] = "/waits-for-debugger";

}  // namespace deja::format

#endif  // DEJA_FORMAT_SCRATCH_SCRATCH_NAMES_H_
