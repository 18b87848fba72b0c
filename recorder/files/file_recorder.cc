#include "recorder/files/file_recorder.h"

#include "recorder/files/created_files.h"
#include "recorder/files/mapped_inputs.h"

namespace deja::recorder {

const char* FileRecorder::MapPath(int dirfd, const char* path, preload::FileUse use,
                                  std::span<char> buffer) {
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return path;
  if (preload::Opens(use)) {
    const ErrnoKeeper keep;
    FilesOf(*rec).inputs.Opening(*rec, dirfd, path);
  }
  if (use == preload::FileUse::kCreate || use == preload::FileUse::kMakeDir) {
    NoteCreation(*rec, dirfd, path);
    const ErrnoKeeper keep;
    FilesOf(*rec).inputs.Looked(*rec, dirfd, path, use);
    return path;
  }
  const preload::FileUse asked = use;
  if (use == preload::FileUse::kLookAtLink) use = preload::FileUse::kLook;
  if (use == preload::FileUse::kResolve) use = preload::FileUse::kRead;
  const char* mapped = FilesOf(*rec).machine.Map(*rec, dirfd, path, use, buffer);
  if (mapped == path) {
    const ErrnoKeeper keep;
    InputFiles& files = FilesOf(*rec).inputs;
    if (asked == preload::FileUse::kResolve)
      files.Resolved(*rec, dirfd, path);
    else if (asked != preload::FileUse::kLookAtLink || !files.LookedAtLink(*rec, dirfd, path))
      files.Looked(*rec, dirfd, path, asked);
  }
  return mapped;
}

preload::FdObject* FileRecorder::OnOpened(int dirfd, const char* path, int fd, int flags) {
  const ErrnoKeeper keep;
  Recording* rec = recorder_.Active();
  return rec == nullptr ? nullptr : FilesOf(*rec).inputs.Opened(*rec, dirfd, path, fd, flags);
}

void FileRecorder::OnAnswered(int dirfd, const char* path, preload::FileUse use, int error) {
  Recording* rec = recorder_.Active();
  if (rec != nullptr) FilesOf(*rec).inputs.Answered(*rec, dirfd, path, use, error);
}

void FileRecorder::OnTaken(int dirfd, const char* path) {
  const ErrnoKeeper keep;
  if (Recording* rec = recorder_.Active()) FilesOf(*rec).inputs.Taken(*rec, dirfd, path);
}

void FileRecorder::BeforeUnmap(void* memory, size_t size) {
  const ErrnoKeeper keep;
  if (Recording* rec = recorder_.Active()) FinishMappings(*rec, memory, size);
}

}  // namespace deja::recorder
