// FolderLayer: the engine's part that lists folders. The recorder's writes down what a folder holds
// when the program opens it; the replayer's gives the program the recorded names in the recorded
// order.
//
// Any thread, within the guard. The program uses one stream by one thread at a time.
#ifndef DEJA_PRELOAD_CALLS_FOLDERS_H_
#define DEJA_PRELOAD_CALLS_FOLDERS_H_

#include <dirent.h>

namespace deja::preload {

class FolderLayer {
 public:
  // The program has opened a folder. `path` is relative to the working directory; null: `stream`
  // was made of a descriptor.
  virtual void OnOpened(DIR* stream, const char* path) = 0;
  // True if the layer answers for `stream` from now on; else the C library does.
  virtual bool Serves(DIR* stream) = 0;
  // The next entry, or null at the end; it is good until the next call.
  virtual dirent* Next(DIR* stream) = 0;
  [[nodiscard]] virtual long Position(DIR* stream) = 0;
  virtual void SetPosition(DIR* stream, long position) = 0;
  virtual void OnClosed(DIR* stream) = 0;

 protected:
  ~FolderLayer() = default;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_FOLDERS_H_
