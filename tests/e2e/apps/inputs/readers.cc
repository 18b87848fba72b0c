// Reads files in each way that a C or C++ program has, and prints a checksum for each.
//
//     input_readers FOLDER WAY…
//
// FOLDER has the files a, b and c. Ways: read, pread, readv, preadv, fread, fgets, getline, fgetc,
// ifstream, threads, children, seek, small, walk, kill.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::string g_folder;

std::string In(const char* name) {
  return g_folder + "/" + name;
}

// FNV-1a.
class Sum {
 public:
  void Add(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i)
      value_ = (value_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
    bytes_ += size;
  }
  void Print(const std::string& name) const {
    std::printf("%s %zu bytes %016lx\n", name.c_str(), bytes_, value_);
  }

 private:
  unsigned long value_ = 0xcbf29ce484222325u;
  size_t bytes_ = 0;
};

int Open(const char* name) {
  const int fd = open(In(name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) std::perror(In(name).c_str());
  return fd;
}

FILE* OpenStream(const char* name) {
  FILE* stream = std::fopen(In(name).c_str(), "r");
  if (stream == nullptr) std::perror(In(name).c_str());
  return stream;
}

void Read(const char* name, size_t piece) {
  const int fd = Open(name);
  std::vector<char> buffer(piece);
  Sum sum;
  for (ssize_t n = 0; (n = read(fd, buffer.data(), buffer.size())) > 0;)
    sum.Add(buffer.data(), static_cast<size_t>(n));
  close(fd);
  sum.Print("read " + std::string(name));
}

void Pread() {
  const int fd = Open("b");
  std::array<char, 5000> buffer{};
  Sum sum;
  for (off_t at : {70000, 0, 4096, 9000}) {
    const ssize_t n = pread(fd, buffer.data(), buffer.size(), at);
    if (n > 0) sum.Add(buffer.data(), static_cast<size_t>(n));
  }
  close(fd);
  sum.Print("pread");
}

void Pieces(bool at_offset) {
  const int fd = Open("b");
  std::array<char, 100> first{};
  std::array<char, 5000> second{};
  const std::array<iovec, 2> pieces = {
      {{first.data(), first.size()}, {second.data(), second.size()}}};
  Sum sum;
  for (int i = 0; i < 4; ++i) {
    const ssize_t n =
        at_offset ? preadv(fd, pieces.data(), 2, 20000 + i * 6000) : readv(fd, pieces.data(), 2);
    if (n != 5100) std::printf("only %zd\n", n);
    sum.Add(first.data(), first.size());
    sum.Add(second.data(), second.size());
  }
  close(fd);
  sum.Print(at_offset ? "preadv" : "readv");
}

void Stream(std::string_view way) {
  FILE* stream = OpenStream("c");
  if (stream == nullptr) return;
  Sum sum;
  std::array<char, 300> buffer{};
  if (way == "fread") {
    std::fseek(stream, 5, SEEK_SET);
    for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), stream)) > 0;)
      sum.Add(buffer.data(), n);
  } else if (way == "fgets") {
    while (std::fgets(buffer.data(), buffer.size(), stream) != nullptr)
      sum.Add(buffer.data(), std::strlen(buffer.data()));
  } else if (way == "getline") {
    char* line = nullptr;
    size_t room = 0;
    for (ssize_t n = 0; (n = getline(&line, &room, stream)) > 0;)
      sum.Add(line, static_cast<size_t>(n));
    std::free(line);
  } else {
    for (int c = 0; (c = std::fgetc(stream)) != EOF;) {
      const char byte = static_cast<char>(c);
      sum.Add(&byte, 1);
    }
  }
  std::fclose(stream);
  sum.Print(std::string(way));
}

void Ifstream() {
  std::ifstream in(In("c"));
  Sum sum;
  for (std::string line; std::getline(in, line);) sum.Add(line.data(), line.size());
  sum.Print("ifstream");
}

void Seek() {
  const int fd = Open("b");
  std::array<char, 1000> buffer{};
  Sum sum;
  for (off_t at : {50000, 30000, 30500}) {
    lseek(fd, at, SEEK_SET);
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n > 0) sum.Add(buffer.data(), static_cast<size_t>(n));
  }
  close(fd);
  sum.Print("seek");
}

// Several threads share one descriptor, each with a part of its own; and each opens one, too.
void Threads() {
  const int shared = Open("b");
  constexpr int kThreads = 8;
  std::vector<Sum> sums(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&sums, shared, i] {
      std::array<char, 4096> buffer{};
      for (int block = 0; block < 8; ++block) {
        const off_t at = (i * 8 + block) * 4096;
        const ssize_t n = pread(shared, buffer.data(), buffer.size(), at);
        if (n > 0) sums[static_cast<size_t>(i)].Add(buffer.data(), static_cast<size_t>(n));
      }
      const int own = Open("a");
      for (ssize_t n = 0; (n = read(own, buffer.data(), buffer.size())) > 0;)
        sums[static_cast<size_t>(i)].Add(buffer.data(), static_cast<size_t>(n));
      close(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  close(shared);
  for (int i = 0; i < kThreads; ++i)
    sums[static_cast<size_t>(i)].Print("thread " + std::to_string(i));
}

// Children read by a descriptor that their parent opened, and by one of their own.
void Children() {
  const int inherited = Open("b");
  std::array<char, 3000> buffer{};
  Sum sum;
  ssize_t n = read(inherited, buffer.data(), buffer.size());
  sum.Add(buffer.data(), static_cast<size_t>(n));
  sum.Print("parent before");
  std::fflush(stdout);
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Sum own;
      n = read(inherited, buffer.data(), buffer.size());
      own.Add(buffer.data(), static_cast<size_t>(n));
      n = pread(inherited, buffer.data(), buffer.size(), 90000 + i * 5000);
      own.Add(buffer.data(), static_cast<size_t>(n));
      own.Print("child " + std::to_string(i));
      Read("a", 1000);
      std::fflush(stdout);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  n = read(inherited, buffer.data(), buffer.size());
  sum.Add(buffer.data(), static_cast<size_t>(n));
  sum.Print("parent after");
  close(inherited);
}

void Small() {
  for (int round = 0; round < 2; ++round) Read("b", 700);
}

void Walk() {
  DIR* folder = opendir(g_folder.c_str());
  if (folder == nullptr) return std::perror(g_folder.c_str());
  while (const dirent* entry = readdir(folder)) {
    struct stat info {};
    stat((g_folder + "/" + entry->d_name).c_str(), &info);
    std::printf("entry %s %d %ld\n", entry->d_name, S_ISDIR(info.st_mode),
                S_ISREG(info.st_mode) ? info.st_size : 0L);
  }
  closedir(folder);
  std::printf("absent: %d\n", access(In("absent").c_str(), F_OK));
}

void Map() {
  const int fd = Open("b");
  struct stat info {};
  fstat(fd, &info);
  const auto size = static_cast<size_t>(info.st_size);
  auto* memory = static_cast<char*>(mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0));
  close(fd);
  Sum sum;
  sum.Add(memory + size / 2, 10000);
  munmap(memory, size);
  sum.Print("mmap");
}

void Kill() {
  const int fd = Open("b");
  std::array<char, 4096> buffer{};
  Sum sum;
  for (int i = 0; i < 300; ++i) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n > 0) sum.Add(buffer.data(), static_cast<size_t>(n));
  }
  sum.Print("until the end");
  std::fflush(stdout);
  kill(getpid(), SIGKILL);
}

void Crash() {
  Read("a", 512);
  std::fflush(stdout);
  const int fd = Open("b");
  std::array<char, 1000> buffer{};
  if (read(fd, buffer.data(), buffer.size()) > 0) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  g_folder = argv[1];
  const std::map<std::string_view, void (*)()> ways = {
      {"read", [] { Read("a", 4096); }},
      {"whole", [] { Read("b", 1 << 20); }},
      {"pread", Pread},
      {"readv", [] { Pieces(false); }},
      {"preadv", [] { Pieces(true); }},
      {"fread", [] { Stream("fread"); }},
      {"fgets", [] { Stream("fgets"); }},
      {"getline", [] { Stream("getline"); }},
      {"fgetc", [] { Stream("fgetc"); }},
      {"ifstream", Ifstream},
      {"threads", Threads},
      {"children", Children},
      {"seek", Seek},
      {"small", Small},
      {"walk", Walk},
      {"mmap", Map},
      {"kill", Kill},
      {"crash", Crash},
  };
  for (int i = 2; i < argc; ++i) {
    const auto way = ways.find(argv[i]);
    if (way == ways.end()) return 2;
    way->second();
  }
  return 0;
}
