// OpenSharedDescriptorFile: a ReadFile of a process that has very many of them.
//
// All of them together keep at most half as many descriptors open as the process may have; the file
// that was read least recently gives its own up and opens itself again when it is read the next
// time. As long as there are fewer files than that, each keeps its descriptor, and goes on reading
// what has been unlinked meanwhile. A file that was replaced is not read: kIo.
//
// Takes a lock in each read; not for processes that fork while another thread reads. Any thread.
#ifndef DEJA_COMMON_OS_SHARED_DESCRIPTOR_FILE_H_
#define DEJA_COMMON_OS_SHARED_DESCRIPTOR_FILE_H_

#include <memory>
#include <string>

#include "common/os/file.h"
#include "common/result.h"

namespace deja::format {

// Errors as those of OpenReadFile.
Result<std::unique_ptr<ReadFile>> OpenSharedDescriptorFile(const std::string& path);

}  // namespace deja::format

#endif  // DEJA_COMMON_OS_SHARED_DESCRIPTOR_FILE_H_
