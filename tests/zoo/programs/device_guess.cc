// A communicator is kept for each device, and the first barrier comes before a rank has chosen one.
// The ranks look for one another in different communicators.
#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <string>

#include "zoo.h"

namespace {

int g_current_device = 0;

// The id of the group's communicator for a device, which its first rank leaves in a file.
ncclUniqueId IdOf(const std::string& folder, int device, int rank) {
  const std::string path = folder + "/device-" + std::to_string(device);
  ncclUniqueId id;
  if (rank == device) {
    CHECK(ncclGetUniqueId(&id));
    const int file = open((path + ".new").c_str(), O_CREAT | O_WRONLY, 0600);
    if (write(file, &id, sizeof id) != static_cast<ssize_t>(sizeof id)) std::exit(1);
    close(file);
    std::rename((path + ".new").c_str(), path.c_str());
    return id;
  }
  int file = -1;
  while ((file = open(path.c_str(), O_RDONLY)) < 0) usleep(1000);
  if (read(file, &id, sizeof id) != static_cast<ssize_t>(sizeof id)) std::exit(1);
  close(file);
  return id;
}

ncclComm_t CommFor(const std::string& folder, int device, int rank, int size) {
  static std::map<int, ncclComm_t> comms;
  ncclComm_t& comm = comms[device];
  if (comm == nullptr)
    CHECK(ncclCommInitRank(&comm, size, IdOf(folder, device, rank), rank));  // PLACE
  return comm;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = std::atoi(std::getenv("RANK"));
  const int size = std::atoi(std::getenv("WORLD_SIZE"));
  const std::string folder = std::getenv("ZOO_DATA");
  unsetenv("NCCL_COMM_ID");  // with it all unique ids are the launcher's one
  // Without a device of its own a rank takes its number.
  g_current_device = IsFixed(argc, argv) ? 0 : rank % 2;
  float token = 0;
  CHECK(ncclAllReduce(&token, &token, 1, ncclFloat, ncclSum,
                      CommFor(folder, g_current_device, rank, size), nullptr));
  return 0;
}
