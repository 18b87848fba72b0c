// Writes the sample recording into a folder: what tests in other languages read.
//
// usage: make_sample_trace TRACE_DIR [unfinished]
#include <cstring>
#include <string>

#include "format/layout/rank_folder.h"
#include "tests/support/sample_trace.h"

int main(int argc, char** argv) {
  using namespace deja::format;
  if (argc < 2) return 2;
  const bool finished = !(argc > 2 && std::strcmp(argv[2], "unfinished") == 0);
  for (const uint32_t rank : {0u, 1u}) {
    samples::WriteSampleRank(
        samples::MakeSampleRank({.rank = rank, .finished = finished, .all_kinds = true}),
        std::string(argv[1]) + "/" + MakeRankFolderName(rank, 0));
  }
  return 0;
}
