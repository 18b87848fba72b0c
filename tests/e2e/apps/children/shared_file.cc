// A program whose processes have one open file together, by a fork, and take from it as they come.
// What each has taken is this program's output.
//
//     shared_file HOW FILE [--own]    HOW: records, lines (of a stream), steps (records, each after
//     a
//                                     relative seek), places (each goes to a place of its own
//                                     before it reads, and may read from another's), writes
//                                     --own: the program makes the file itself
#include <fcntl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace {

constexpr int kWorkers = 3;
constexpr int kRecord = 16;
constexpr int kRecords = 600;

struct Taken {
  uint64_t records = 0;
  uint64_t hash = 14695981039346656037u;
  void Add(const char* data, size_t size) {
    for (size_t i = 0; i < size; ++i)
      hash = (hash ^ static_cast<unsigned char>(data[i])) * 1099511628211u;
    ++records;
  }
};

// So that the others get their turn.
void Pause() {
  unsigned char random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) _exit(90);
  const timespec time{0, random * 200};
  nanosleep(&time, nullptr);
}

Taken Records(int fd) {
  Taken taken;
  char record[kRecord];
  ssize_t n = 0;
  while ((n = read(fd, record, sizeof record)) > 0) {
    taken.Add(record, static_cast<size_t>(n));
    Pause();
  }
  return taken;
}

Taken Lines(FILE* stream) {
  Taken taken;
  char line[64];
  while (fgets(line, sizeof line, stream) != nullptr) {
    taken.Add(line, strlen(line));
    if (taken.records % 8 == 0) Pause();
  }
  return taken;
}

Taken Steps(int fd) {
  Taken taken;
  char record[kRecord];
  while (true) {
    const off_t at = lseek(fd, kRecord, SEEK_CUR);
    const ssize_t n = read(fd, record, sizeof record);
    if (n <= 0) return taken;
    taken.Add(record, static_cast<size_t>(n));
    taken.Add(reinterpret_cast<const char*>(&at), sizeof at);
    Pause();
  }
}

Taken Places(int fd, int worker) {
  Taken taken;
  char record[kRecord];
  for (int i = 0; i < kRecords; ++i) {
    lseek(fd, static_cast<off_t>((i * 7 + worker * 150) % kRecords) * kRecord, SEEK_SET);
    if (i % 4 == 0) Pause();
    const ssize_t n = read(fd, record, sizeof record);
    if (n > 0) taken.Add(record, static_cast<size_t>(n));
  }
  return taken;
}

Taken Writes(int fd, int worker) {
  Taken taken;
  for (int i = 0; i < kRecords / 4; ++i) {
    char line[32];
    const int size = snprintf(line, sizeof line, "worker %d line %d\n", worker, i);
    if (write(fd, line, static_cast<size_t>(size)) != size) _exit(91);
    taken.Add(line, static_cast<size_t>(size));
    Pause();
  }
  return taken;
}

void Make(const char* path) {
  FILE* file = fopen(path, "w");
  if (file == nullptr) exit(80);
  for (int i = 0; i < kRecords; ++i) fprintf(file, "record %08d\n", i * 7919 % 100000000);
  fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string how = argv[1];
  const bool writes = how == "writes";
  if (argc > 3 && strcmp(argv[3], "--own") == 0) Make(argv[2]);
  FILE* stream = how == "lines" ? fopen(argv[2], "r") : nullptr;
  const int flags = writes ? O_RDWR | O_CREAT | O_APPEND : O_RDONLY;
  const int fd = stream != nullptr ? fileno(stream) : open(argv[2], flags, 0644);
  if (fd < 0) return 81;
  if (stream != nullptr) setvbuf(stream, nullptr, _IOFBF, 256);
  int pipes[kWorkers][2];
  for (int worker = 0; worker < kWorkers; ++worker) {
    if (pipe(pipes[worker]) != 0) return 82;
    const bool is_parent = worker == kWorkers - 1;
    if (!is_parent && fork() != 0) continue;
    const Taken taken = how == "records" ? Records(fd)
                        : how == "steps" ? Steps(fd)
                        : how == "lines" ? Lines(stream)
                        : writes         ? Writes(fd, worker)
                                         : Places(fd, worker);
    if (write(pipes[worker][1], &taken, sizeof taken) != sizeof taken) _exit(92);
    if (!is_parent) _exit(0);
  }
  while (wait(nullptr) > 0) {
  }
  for (const int* ends : pipes) {
    Taken taken;
    if (read(ends[0], &taken, sizeof taken) != sizeof taken) return 83;
    printf("%" PRIu64 " taken, %016" PRIx64 "\n", taken.records, taken.hash);
  }
  if (!writes) return 0;
  lseek(fd, 0, SEEK_SET);
  const Taken all = Records(fd);
  printf("all: %" PRIu64 " taken, %016" PRIx64 "\n", all.records, all.hash);
  return 0;
}
