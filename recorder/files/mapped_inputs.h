// Mappings of input files: which pages of them the program has touched.
//
// No call shows the accesses. When a mapping ends (munmap, the end of the process, a crash), the
// process's page table says which of its pages were ever touched. These are read from the file, if
// it is still the same, and recorded as ranges. docs/decisions/0008 has the reasons and figures.
//
// A fixed table: what is mapped beyond it is not recorded. Any thread, inside the guard.
#ifndef DEJA_RECORDER_FILES_MAPPED_INPUTS_H_
#define DEJA_RECORDER_FILES_MAPPED_INPUTS_H_

#include <cstddef>
#include <cstdint>

namespace deja::recorder {

struct KnownFile;
class Recording;

// `size` bytes of `file` from `offset` on are at `memory`.
void NoteMapping(KnownFile& file, void* memory, size_t size, int64_t offset);
// [memory, memory + size) is about to be unmapped.
void FinishMappings(Recording& rec, void* memory, size_t size);
// All of them, and they stay: the process ends.
void FinishAllMappings(Recording& rec, bool in_signal);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_MAPPED_INPUTS_H_
