// Copies from descriptor to descriptor that never pass through the program's memory, and prints
// what arrived.
//
//     input_copies FOLDER WAY…            sendfile, pipe, splice, range
//     input_copies FOLDER stdin           from standard input, a pipe
//     input_copies FOLDER socket PORT     two lines to a server, and what it answers
//     input_copies FOLDER fifo            from memory to the FIFO FOLDER/out, and back from
//     FOLDER/in
//
// FOLDER has the file `data`, of lines of 100 bytes; what is copied into a file is FOLDER/copy.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::string g_folder;

std::string In(const char* name) {
  return g_folder + "/" + name;
}

int Data() {
  const int fd = open(In("data").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) std::perror("data");
  return fd;
}

int NewCopy() {
  return open(In("copy").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

// FNV-1a.
uint64_t SumOf(const std::string& text) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (unsigned char c : text) sum = (sum ^ c) * 0x100000001b3u;
  return sum;
}

std::string ReadAll(int fd) {
  std::string all;
  char buffer[5000];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) all.append(buffer, n);
  return all;
}

void Print(const char* what, const std::string& text) {
  std::printf("%s %zu bytes %016lx\n", what, text.size(), SumOf(text));
}

void PrintCopy(const char* what, int copy) {
  lseek(copy, 0, SEEK_SET);
  Print(what, ReadAll(copy));
  close(copy);
}

void Sendfile() {
  const int data = Data();
  const int copy = NewCopy();
  off_t at = 50000;
  ssize_t n = sendfile(copy, data, &at, 70000);
  std::printf("%zd %ld\n", n, at);
  n = sendfile(copy, data, nullptr, 30000);
  char next[4];
  std::printf("%zd %ld %zd\n", n, lseek(data, 0, SEEK_CUR), read(data, next, sizeof next));
  std::printf("%02x%02x\n", static_cast<unsigned char>(next[0]),
              static_cast<unsigned char>(next[3]));
  close(data);
  PrintCopy("sendfile", copy);
}

void Splice() {
  const int data = Data();
  const int copy = NewCopy();
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return;
  off64_t at = 100000;
  for (int i = 0; i < 4; ++i) {
    const ssize_t in = splice(data, i < 2 ? &at : nullptr, pipe_ends[1], nullptr, 9000, 0);
    ssize_t out = 0;
    while (out < in) out += splice(pipe_ends[0], nullptr, copy, nullptr, in - out, SPLICE_F_MOVE);
    std::printf("%zd %zd\n", in, out);
  }
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  close(data);
  PrintCopy("splice", copy);
}

void Range() {
  const int data = Data();
  const int copy = NewCopy();
  off64_t from = 200000;
  off64_t to = 1000;
  ssize_t done = 0;
  while (done < 50000) {
    const ssize_t n = copy_file_range(data, &from, copy, &to, 50000 - done, 0);
    if (n <= 0) {
      std::perror("copy_file_range");
      break;
    }
    done += n;
  }
  std::printf("%zd %ld %ld\n", done, from, to);
  close(data);
  PrintCopy("range", copy);
}

void Pipe() {
  const int data = Data();
  int ends[2];
  if (pipe(ends) != 0) return;
  std::string all;
  std::thread reader([&] { all = ReadAll(ends[0]); });
  while (sendfile(ends[1], data, nullptr, 40000) > 0) continue;
  close(ends[1]);
  reader.join();
  close(ends[0]);
  close(data);
  Print("pipe", all);
}

// All but what has been read by then is taken from standard input by the kernel.
void Stdin() {
  char first[3] = {};
  std::printf("%zd %.3s\n", read(STDIN_FILENO, first, sizeof first), first);
  int ends[2];
  if (pipe(ends) != 0) return;
  std::vector<char> buffer(1 << 20);
  const ssize_t seen = tee(STDIN_FILENO, ends[1], 1 << 20, 0);
  const ssize_t got = read(ends[0], buffer.data(), buffer.size());
  Print("tee", std::string(buffer.data(), std::max<ssize_t>(got, 0)));
  std::printf("%d\n", seen == got);
  const int copy = NewCopy();
  for (;;) {
    const ssize_t n = splice(STDIN_FILENO, nullptr, ends[1], nullptr, 1 << 20, 0);
    if (n <= 0) break;
    for (ssize_t out = 0; out < n;) out += splice(ends[0], nullptr, copy, nullptr, n - out, 0);
  }
  PrintCopy("stdin", copy);
}

void Socket(const char* port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    std::perror("connect");
  const int data = Data();
  int ends[2];
  if (pipe(ends) != 0) return;
  // A line of the file by sendfile, a line by a pipe.
  ssize_t sent = 0;
  while (sent < 100) sent += sendfile(fd, data, nullptr, 100 - sent);
  sent = splice(data, nullptr, ends[1], nullptr, 100, 0);
  std::printf("%zd\n", sent);
  for (ssize_t out = 0; out < sent;) out += splice(ends[0], nullptr, fd, nullptr, sent - out, 0);
  if (write(fd, "bye\n", 4) != 4) std::perror("write");
  const int copy = NewCopy();
  for (;;) {
    const ssize_t n = splice(fd, nullptr, ends[1], nullptr, 1 << 16, 0);
    if (n <= 0) break;
    for (ssize_t out = 0; out < n;) out += splice(ends[0], nullptr, copy, nullptr, n - out, 0);
  }
  close(data);
  PrintCopy("socket", copy);
  close(fd);
}

void Fifo() {
  const int fd = open(In("out").c_str(), O_WRONLY);
  char text[] = "question\n";
  const iovec pieces[2] = {{text, 4}, {text + 4, 5}};
  std::printf("%zd\n", vmsplice(fd, pieces, 2, 0));
  const int in = open(In("in").c_str(), O_RDONLY);
  char answer[200] = {};
  const iovec room{answer, sizeof answer};
  std::printf("%zd\n", vmsplice(in, &room, 1, 0));
  std::printf("%s", answer);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  g_folder = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string_view way = argv[i];
    if (way == "sendfile") Sendfile();
    if (way == "pipe") Pipe();
    if (way == "splice") Splice();
    if (way == "range") Range();
    if (way == "stdin") Stdin();
    if (way == "socket" && i + 1 < argc) Socket(argv[++i]);
    if (way == "fifo") Fifo();
  }
}
