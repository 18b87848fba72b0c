// Reads memory that it has not written: what it frees comes back as it left it, unless malloc fills
// it. Prints how many bytes of each block are not zero.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

constexpr size_t kBlocks = 16;

void* Aligned(size_t bytes) {
  void* block = nullptr;
  return posix_memalign(&block, 64, bytes) == 0 ? block : nullptr;
}

template <typename Allocate>
void Show(const char* who, const char* how, size_t bytes, Allocate allocate) {
  std::array<void*, kBlocks> blocks{};
  for (void*& block : blocks) std::memset(block = allocate(bytes), 0xAB, bytes);
  for (void* block : blocks) std::free(block);
  size_t left = 0;
  for (void*& block : blocks) {
    block = allocate(bytes);
    // The compiler may assume nothing of what a volatile read finds.
    const volatile auto* content = static_cast<unsigned char*>(block);
    for (size_t i = 0; i < bytes; ++i) left += content[i] != 0 ? 1 : 0;
  }
  for (void* block : blocks) std::free(block);
  std::printf("%s %s %zu: %zu left\n", who, how, bytes, left);
}

void ShowAll(const char* who) {
  for (size_t bytes : {size_t{24}, size_t{1000}, size_t{100000}, size_t{4} << 20}) {
    Show(who, "malloc", bytes, [](size_t size) { return std::malloc(size); });
    Show(who, "posix_memalign", bytes, Aligned);
  }
}

}  // namespace

int main() {
  ShowAll("main");
  std::thread(ShowAll, "thread").join();
}
