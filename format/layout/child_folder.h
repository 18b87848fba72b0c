// Children: the folders of processes that ranks have made, and whose they are.
//
// A process is named by its place in the tree of its job: a random root, and the path from there.
// The path has THREAD/NUMBER for each process on the way; NUMBER counts the processes that the
// thread has made. "+K" follows for the K-th image after an exec. A child belongs to the rank that
// is its nearest ancestor; below it, its name is the rest of its path. docs/FORMAT.md, "Children".
//
// Values and pure functions over files; any thread.
#ifndef DEJA_FORMAT_LAYOUT_CHILD_FOLDER_H_
#define DEJA_FORMAT_LAYOUT_CHILD_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace deja::format {

// What the header of a folder says about its process.
struct Origin {
  std::string root;
  std::string path;
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  std::string hostname;
  std::string tail;
};

// Reads the header only.
Result<Origin> ReadOrigin(const std::string& folder);

// Paths of the children's folders in `directory`, sorted by name; none is not an error.
std::vector<std::string> ListChildFolders(const std::string& directory);

// True if `child` was made by `ancestor` or by a process that it has made. `name`: below it.
bool IsBelow(const Origin& child, const Origin& ancestor, std::string& name);

struct ChildFolder {
  std::string name;  // below its rank: "0/1", "0.2/3+1"
  Origin origin;
  std::string path;
};

// Whose child it is among `ranks`: position of the nearest ancestor; -1: of none.
int OwnerOf(const Origin& child, const std::vector<Origin>& ranks, std::string& name);

// The path of the process that has forked the one at `path`, in the image that it had then;
// nothing: `path` began with an image of its own. "0/1+1/0/2": "0/1+1", "0/2": "".
std::optional<std::string> ForkedFrom(const std::string& path);
// True if `process` has forked one of `ranks`, or the process that has, with no image in between: a
// replay of that rank begins there.
bool IsForkAncestor(const Origin& process, const std::vector<Origin>& ranks);

// Order of names as people count: 0/2 before 0/10.
bool NameBefore(std::string_view a, std::string_view b);

}  // namespace deja::format

#endif  // DEJA_FORMAT_LAYOUT_CHILD_FOLDER_H_
