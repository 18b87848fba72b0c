// Does to files, folders and sockets what training programs do, and says what it sees. It would do
// damage if a replay let it: overwrites, appends, replaces by rename, removes.
//
//   replay_files FOLDER    with FOLDER/config, FOLDER/log, FOLDER/old/1 and FOLDER/old/2 there
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <nccl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

std::string Read(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::string("(") + std::strerror(errno) + ")";
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string List(const std::string& path) {
  std::vector<std::string> names;
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) return std::string("(") + std::strerror(errno) + ")";
  while (const dirent* entry = readdir(dir))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  closedir(dir);
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + " ";
  return text;
}

void Say(const char* what, const std::string& text) {
  std::printf("%s: %s\n", what, text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || chdir(argv[1]) != 0) return 2;
  ncclUniqueId id;
  ncclComm_t comm;
  if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess)
    return 3;
  const std::string drawn = std::to_string(std::random_device()());

  Say("config", Read("config"));
  { std::ofstream("config") << "drawn " << drawn << "\n"; }
  Say("config", Read("config"));
  { std::ofstream("log", std::ios::app) << "appended " << drawn << "\n"; }
  Say("log", Read("log"));

  // A checkpoint as one writes them: a new file that replaces the old one.
  { std::ofstream("log.tmp") << "replaced " << drawn << "\n"; }
  Say("rename", std::to_string(std::rename("log.tmp", "log")));
  Say("log", Read("log"));

  Say("mkdir", std::to_string(mkdir("new", 0777)));
  Say("mkdir again", mkdir("new", 0777) != 0 ? std::strerror(errno) : "made");
  { std::ofstream("new/file") << drawn; }
  Say("new", List("new"));
  Say("unlink", std::to_string(unlink("old/1")));
  Say("old", List("old"));
  Say("rmdir", rmdir("old") != 0 ? std::strerror(errno) : "removed");
  Say("rename folder", std::to_string(std::rename("old", "older")));
  Say("older", List("older") + Read("older/2"));
  Say("chmod", std::to_string(chmod("config", 0600)));
  struct stat info;
  Say("mode", std::to_string(stat("config", &info) == 0 ? info.st_mode & 0777 : 0));
  Say("link", std::to_string(link("config", "linked")));
  { std::ofstream("linked", std::ios::app) << "through the link\n"; }
  Say("here", List("."));

  const int fd = open("raw", O_RDWR | O_CREAT | O_EXCL, 0644);
  Say("raw", std::to_string(write(fd, "raw", 3)));
  Say("raw again",
      open("raw", O_RDWR | O_CREAT | O_EXCL, 0644) < 0 ? std::strerror(errno) : "made");
  std::FILE* null = std::fopen("/dev/null", "w");
  Say("null", null != nullptr && std::fputs("x", null) >= 0 ? "written" : "no");

  if (argc > 2) {  // a port with a listener
    const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[2])));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int rc = connect(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
    std::fprintf(stderr, "connect: %s\n", rc == 0 ? "connected" : std::strerror(errno));
  }
  ncclCommDestroy(comm);
  return 0;
}
