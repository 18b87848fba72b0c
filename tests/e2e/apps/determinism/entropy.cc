// Draws from every source of entropy that the C and C++ libraries have, and prints what it drew.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <thread>

namespace {

constexpr size_t kBytes = 8;
unsigned char g_bytes[kBytes];

void Print(const char* what, long got) {
  std::printf("%s %ld", what, got);
  for (unsigned char c : g_bytes) std::printf(" %02x", c);
  std::printf("\n");
  std::memset(g_bytes, 0, kBytes);
}

void Functions() {
  Print("getrandom", getrandom(g_bytes, kBytes, 0));
  Print("getrandom, not blocking", getrandom(g_bytes, kBytes, GRND_NONBLOCK));
  Print("getentropy", getentropy(g_bytes, kBytes));
  Print("syscall", syscall(SYS_getrandom, g_bytes, kBytes, 0L));
  // By name: the C library of older systems does not have them.
  if (auto* arc4random = reinterpret_cast<uint32_t (*)()>(dlsym(RTLD_DEFAULT, "arc4random")))
    std::printf("arc4random %u\n", arc4random());
  if (auto* uniform =
          reinterpret_cast<uint32_t (*)(uint32_t)>(dlsym(RTLD_DEFAULT, "arc4random_uniform")))
    std::printf("arc4random_uniform %u\n", uniform(1000000));
  if (auto* fill =
          reinterpret_cast<void (*)(void*, size_t)>(dlsym(RTLD_DEFAULT, "arc4random_buf"))) {
    fill(g_bytes, kBytes);
    Print("arc4random_buf", 0);
  }
#ifndef DEJA_STATIC_LIBSTDCXX  // which asks the CPU, and no call can be intercepted
  std::random_device device;
  std::printf("random_device %u %u\n", device(), device());
#endif
  std::random_device kernel("getentropy");
  std::printf("random_device of the kernel %u\n", kernel());
  std::random_device urandom("/dev/urandom");
  std::printf("random_device of a file %u\n", urandom());
  srand(static_cast<unsigned>(time(nullptr)) ^ static_cast<unsigned>(getpid()));
  std::printf("rand %d\n", rand());
  srandom(static_cast<unsigned>(time(nullptr)));
  std::printf("random %ld\n", random());
  std::memcpy(g_bytes, reinterpret_cast<const void*>(getauxval(AT_RANDOM)), kBytes);
  Print("AT_RANDOM", 0);
}

void Descriptors() {
  const int fd = open("/dev/urandom", O_RDONLY);
  Print("read", read(fd, g_bytes, kBytes));
  Print("pread", pread(fd, g_bytes, kBytes, 0));
  iovec pieces[2] = {{g_bytes, 3}, {g_bytes + 3, kBytes - 3}};
  Print("readv", readv(fd, pieces, 2));
  const int copy = dup(fd);
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, 300);
  close(fd);
  Print("dup", read(copy, g_bytes, kBytes));
  Print("F_DUPFD", read(high, g_bytes, kBytes));
  close(high);
  FILE* stream = fdopen(copy, "rb");
  Print("fdopen", static_cast<long>(fread(g_bytes, 1, kBytes, stream)));
  std::fclose(stream);
  stream = std::fopen("/dev/random", "rb");
  Print("fread", static_cast<long>(fread(g_bytes, 1, kBytes, stream)));
  std::printf("fgetc %d\n", fgetc(stream));
  std::printf("getc %d\n", getc(stream));
  std::fclose(stream);
  std::ifstream file("/dev/urandom", std::ios::binary);
  file.read(reinterpret_cast<char*>(g_bytes), kBytes);
  Print("ifstream", static_cast<long>(file.gcount()));
  const int folder = open("/dev", O_RDONLY | O_DIRECTORY);
  const int relative = openat(folder, "urandom", O_RDONLY);
  Print("openat", read(relative, g_bytes, kBytes));
  close(relative);
  close(folder);
}

// What the C library reads into its own buffers, by functions that the compiler may inline, too.
void Streams() {
  FILE* stream = std::fopen("/dev/urandom", "rb");
  char line[12] = {};
  std::memcpy(g_bytes, fgets(line, sizeof line, stream), 8);
  Print("fgets", 0);
  std::printf("getc_unlocked %d\n", getc_unlocked(stream));
  std::fscanf(stream, "%8c", line);
  std::memcpy(g_bytes, line, kBytes);
  Print("fscanf", 0);
  char* text = nullptr;
  size_t room = 0;
  const ssize_t size = getline(&text, &room, stream);
  std::memcpy(g_bytes, text, std::min<size_t>(kBytes, static_cast<size_t>(size)));
  Print("getline", size);
  std::free(text);
  std::fclose(stream);
  stream = std::fopen("/dev/random", "rb");
  setvbuf(stream, nullptr, _IONBF, 0);
  const int first = fgetc(stream);
  Print("a stream without a buffer", static_cast<long>(fread(g_bytes, 1, kBytes, stream)) + first);
  std::fclose(stream);
}

// Descriptors that did not come from opening a device by its name.
void OtherWays() {
  const int fd = open("/dev/urandom", O_RDONLY);
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const int again = open(link.c_str(), O_RDONLY);
  Print("by the name of a descriptor", read(again, g_bytes, kBytes));
  close(again);
  int ends[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
  sendmsg(ends[0], &message, 0);
  close(fd);
  recvmsg(ends[1], &message, 0);
  int received = -1;
  std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
  Print("by a message", read(received, g_bytes, kBytes));
  close(received);
  close(ends[0]);
  close(ends[1]);
}

void Files() {
  for (int i = 0; i < 2; ++i) {
    std::ifstream uuid("/proc/sys/kernel/random/uuid");
    std::string text;
    std::getline(uuid, text);
    std::printf("uuid %s\n", text.c_str());
  }
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(boot, text);
  std::printf("boot_id %s\n", text.c_str());
}

}  // namespace

int main() {
  Functions();
  Descriptors();
  Streams();
  OtherWays();
  Files();
  std::thread([] { Print("getrandom in a thread", getrandom(g_bytes, kBytes, 0)); }).join();
}
