// usage: signals SETUP CRASH: sets up handlers in one way, then dies, or not, in another.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

const int kAll[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP, SIGTERM};

sigjmp_buf g_back;
char g_stack[256 << 10];
volatile int g_zero = 0;
void* g_fault_address = nullptr;

void Say(const char* text) {
  if (write(1, text, strlen(text)) < 0) _exit(99);
}

const char* Number(int n) {
  static char text[16];
  snprintf(text, sizeof text, "%d ", n);
  return text;
}

bool OnOwnStack() {
  char here;
  return &here >= g_stack && &here < g_stack + sizeof g_stack;
}

void Plain(int signal) {
  Say("plain handler ");
  Say(Number(signal));
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);
  Say(sigismember(&blocked, signal) ? "blocked " : "open ");
  Say(sigismember(&blocked, SIGUSR1) ? "usr1 blocked\n" : "usr1 open\n");
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void Info(int signal, siginfo_t* info, void* context) {
  Say("info handler ");
  Say(Number(signal));
  Say(Number(info->si_code));
  Say(info->si_addr == g_fault_address ? "address " : "no address ");
  Say(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] != 0 ? "context " : "");
  Say(OnOwnStack() ? "own stack\n" : "same stack\n");
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

void Jump(int signal) {
  Say("jump handler ");
  Say(Number(signal));
  Say("\n");
  siglongjmp(g_back, 1);
}

void Exits(int signal) {
  Say("exit handler\n");
  _exit(40 + signal);
}

void Returns(int signal) {
  Say("returns ");
  Say(Number(signal));
  Say("\n");
}

// A handler that crashes itself, in another way.
void Nested(int) {
  Say("nested\n");
  abort();
}

void ShowOld(int signal, const struct sigaction& old) {
  if (old.sa_handler != SIG_DFL) {
    Say("unexpected old handler ");
    Say(Number(signal));
  }
}

void SetUp(const std::string& how) {
  for (int signal : kAll) {
    struct sigaction action {};
    struct sigaction old {};
    sigemptyset(&action.sa_mask);
    if (how == "default") continue;
    if (how == "ignore") {
      ::signal(signal, SIG_IGN);
      continue;
    }
    if (how == "signal") {
      if (::signal(signal, &Plain) != SIG_DFL) Say("unexpected old handler\n");
      if (::signal(signal, &Plain) != &Plain) Say("handler is not what was set\n");
      continue;
    }
    if (how == "sysv") {
      sysv_signal(signal, &Returns);
      continue;
    }
    if (how == "plain") {
      action.sa_handler = &Plain;
      sigaddset(&action.sa_mask, SIGUSR1);
    } else if (how == "info" || how == "onstack") {
      action.sa_sigaction = &Info;
      action.sa_flags = SA_SIGINFO;
    } else if (how == "jump") {
      action.sa_handler = &Jump;
    } else if (how == "exits") {
      action.sa_handler = &Exits;
    } else if (how == "nested") {
      if (signal == SIGABRT) continue;
      action.sa_handler = &Nested;
    } else if (how == "resethand") {
      action.sa_handler = &Returns;
      action.sa_flags = SA_RESETHAND;
    } else {
      exit(98);
    }
    if (how == "onstack") action.sa_flags |= SA_ONSTACK;
    if (sigaction(signal, &action, &old) != 0) Say("sigaction failed\n");
    ShowOld(signal, old);
    struct sigaction again {};
    sigaction(signal, nullptr, &again);
    constexpr int kChosen = ~0x04000000;  // the C library's own
    if (again.sa_handler != action.sa_handler ||
        (again.sa_flags & kChosen) != (action.sa_flags & kChosen))
      Say("handler is not what was set\n");
  }
  stack_t stack{};
  stack_t old{};
  sigaltstack(nullptr, &old);
  if (old.ss_flags != SS_DISABLE) Say("there is an alternate stack already\n");
  if (how == "onstack") {
    stack.ss_sp = g_stack;
    stack.ss_size = sizeof g_stack;
    sigaltstack(&stack, nullptr);
    sigaltstack(nullptr, &old);
    if (old.ss_sp != g_stack) Say("the alternate stack is another one\n");
  }
}

int Recurse(int n) {
  volatile char room[1000];  // less than the guard page, so that it is not jumped over
  room[n % 1000] = 1;
  return n < 0 ? 0 : Recurse(n + 1) + room[n % 1000];
}

void Crash(const std::string& how) {
  if (how == "null") {
    *static_cast<volatile int*>(g_fault_address) = 1;
  } else if (how == "bus") {
    FILE* file = tmpfile();
    auto* p =
        static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fileno(file), 0));
    g_fault_address = const_cast<char*>(p);
    if (p[0] == 1) Say("there is something\n");
  } else if (how == "noncanonical") {
    *reinterpret_cast<volatile int*>(0x1234567812345678) = 1;
  } else if (how == "divide") {
    volatile int dividend = 5;
    volatile int quotient = dividend / g_zero;
    if (quotient == 7) Say("divided\n");
  } else if (how == "illegal") {
    __builtin_trap();
  } else if (how == "breakpoint") {
    asm volatile("int3");
  } else if (how == "abort") {
    abort();
  } else if (how == "raise") {
    raise(SIGSEGV);
  } else if (how == "kill") {
    kill(getpid(), SIGBUS);
  } else if (how == "term") {
    kill(getpid(), SIGTERM);
  } else if (how == "overflow") {
    rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_STACK, &limit);
    if (Recurse(1) == 5) Say("");
  } else if (how == "thread") {
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          *static_cast<volatile int*>(g_fault_address) = 1;
          return nullptr;
        },
        nullptr);
    pthread_join(thread, nullptr);
  } else if (how == "threadoverflow") {
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          if (Recurse(1) == 5) Say("");
          return nullptr;
        },
        nullptr);
    pthread_join(thread, nullptr);
  } else if (how == "calls") {
    void (*nowhere)() = nullptr;
    asm volatile("" : "+r"(nowhere));
    nowhere();
  } else {
    exit(97);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 96;
  if (getppid() == 0) return 95;  // any call that is of interest
  SetUp(argv[1]);
  for (int round = 0; round < 3; ++round) {
    if (sigsetjmp(g_back, 1) == 0) {
      Crash(argv[2]);
      Say("went on\n");
      break;
    }
    Say("jumped back\n");
  }
  return 7;
}
