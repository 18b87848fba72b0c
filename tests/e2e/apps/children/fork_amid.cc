// Forks while another thread does what the argument names, again and again; each child does it
// once. Prints how many of them did not end within ten seconds.
//
//   fork_amid pipes|polls|handlers|files [forks]
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

namespace {

constexpr unsigned kPatienceS = 10;

void MakePipe() {
  int ends[2];
  if (pipe(ends) != 0) abort();
  close(ends[0]);
  close(ends[1]);
}

void Poll() {
  const int epoll = epoll_create1(0);
  int ends[2];
  if (epoll < 0 || pipe(ends) != 0) abort();
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
  close(ends[0]);
  close(ends[1]);
  close(epoll);
}

void SetHandler() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &action, nullptr);
}

void ReadFile() {
  const int fd = open("data", O_RDONLY);
  char text[8];
  if (fd < 0 || read(fd, text, sizeof text) < 0) abort();
  close(fd);
}

const std::map<std::string, std::function<void()>> kWork = {
    {"pipes", MakePipe}, {"polls", Poll}, {"handlers", SetHandler}, {"files", ReadFile}};

}  // namespace

int main(int argc, char** argv) {
  const auto work = argc < 2 ? kWork.end() : kWork.find(argv[1]);
  if (work == kWork.end()) {
    fprintf(stderr, "usage: fork_amid pipes|polls|handlers|files [forks]\n");
    return 2;
  }
  const int forks = argc > 2 ? atoi(argv[2]) : 200;
  std::thread([&] {
    for (;;) work->second();
  }).detach();
  int stuck = 0;
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kPatienceS);
      work->second();
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) abort();
    if (status != 0) ++stuck;
  }
  printf("%d of %d stuck\n", stuck, forks);
  fflush(stdout);
  _exit(stuck != 0);
}
