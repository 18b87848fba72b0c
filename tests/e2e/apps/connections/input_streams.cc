// Reads standard input in one of the ways that C and C++ have, and prints what it got.
// usage: connection_input_streams read|fgets|cin|scanf|getline|fread|seek|popen
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

namespace {

void ByRead() {
  char buffer[64];
  for (ssize_t n; (n = read(0, buffer, sizeof buffer)) > 0;)
    printf("%zd bytes: %.*s", n, static_cast<int>(n), buffer);
}

void ByFgets() {
  char line[64];
  while (fgets(line, sizeof line, stdin) != nullptr) printf("line: %s", line);
  printf("eof %d error %d\n", feof(stdin) != 0, ferror(stdin) != 0);
}

void ByCin() {
  for (std::string word; std::cin >> word;) printf("word: %s\n", word.c_str());
}

void ByScanf() {
  for (char word[64]; scanf("%63s", word) == 1;) printf("word: %s\n", word);
}

void ByGetline() {
  char* line = nullptr;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) printf("line: %s", line);
  free(line);
}

void ByFread() {
  char buffer[7];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, stdin)) > 0;)
    printf("%zu: %.*s|\n", n, static_cast<int>(n), buffer);
}

// A regular file, of which a part is read twice.
void BySeek() {
  char buffer[16] = {};
  printf("%zd at %ld: %.8s\n", read(0, buffer, 8), static_cast<long>(lseek(0, 0, SEEK_CUR)),
         buffer);
  printf("size %ld\n", static_cast<long>(lseek(0, 0, SEEK_END)));
  lseek(0, 4, SEEK_SET);
  printf("%zd: %.8s\n", read(0, buffer, 8), buffer);
}

}  // namespace

int main(int argc, char** argv) {
  struct Way {
    const char* name;
    void (*run)();
  };
  const Way ways[] = {{"read", ByRead},   {"fgets", ByFgets},     {"cin", ByCin},
                      {"scanf", ByScanf}, {"getline", ByGetline}, {"fread", ByFread},
                      {"seek", BySeek}};
  for (const Way& way : ways)
    if (argc > 1 && std::strcmp(argv[1], way.name) == 0) {
      way.run();
      return 0;
    }
  return 2;
}
