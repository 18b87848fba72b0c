// WrittenRank: a rank's recording on disk, thread by thread, and a session that replays it.
//
// For one test, on its thread.
#ifndef DEJA_TESTS_UNIT_REPLAYER_WRITTEN_RANK_H_
#define DEJA_TESTS_UNIT_REPLAYER_WRITTEN_RANK_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "format/log/rank_log.h"
#include "format/wire/message_codec.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"
#include "replayer/core/session.h"
#include "tests/support/temp_dir.h"

namespace deja::replayer {

class WrittenRank {
 public:
  // A thread of the recording. Its events' times follow each other from 1001 ns on, unless they are
  // given.
  class Thread {
   public:
    Thread(format::RankLog& log, uint32_t number, const std::string& name)
        : log_(log), number_(number), sink_(log.ClaimSink(number)) {
      format::ThreadStart start;
      start.thread = number;
      start.name = name;
      Add(start);
    }
    ~Thread() { log_.ReleaseSink(sink_); }
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    template <typename Body>
    void Add(const Body& body, uint64_t time_ns = 0) {
      const uint64_t seq = seq_++;
      const format::EventHead head{number_, seq, time_ns == 0 ? 1001 + seq : time_ns};
      ASSERT_TRUE(sink_->Append(format::AsBytes(format::EncodeEventToString(head, body))));
    }

   private:
    format::RankLog& log_;
    const uint32_t number_;
    format::EventSink* sink_;
    uint64_t seq_ = 0;
  };

  Thread Begin(const std::string& name) { return Thread(Log(), next_thread_++, name); }

  // The session is never destroyed.
  Session* Open(bool stops_on_divergence = true) {
    Log().Finish();
    SessionOptions options;
    options.folder = Log().folder();
    options.scratch = scratch_.path();
    options.stop_on_divergence = stops_on_divergence;
    Session* session = Session::Open(options);
    EXPECT_NE(session, nullptr);
    static auto* kept = new std::vector<Session*>();
    kept->push_back(session);
    return session;
  }

  // What the replay has reported.
  [[nodiscard]] std::string Report() const {
    std::ostringstream text;
    text << std::ifstream(scratch_ / "report.jsonl").rdbuf();
    return text.str();
  }

 private:
  format::RankLog& Log() {
    if (log_ != nullptr) return *log_;
    format::RankLogOptions options;
    options.trace_dir = trace_.path();
    options.tail_dir = trace_.path();
    options.job_id = "00112233445566778899aabbccddeeff";
    auto log = format::RankLog::Create(options);
    EXPECT_TRUE(log);
    log_ = std::move(*log);
    format::TraceHeader header;
    header.world_size = 1;
    header.process.pid = 4000;
    EXPECT_TRUE(log_->BecomeRank(header));
    return *log_;
  }

  TempDir trace_;
  TempDir scratch_;
  std::unique_ptr<format::RankLog> log_;
  uint32_t next_thread_ = 0;
};

// The calling thread is the recorded one of that name.
inline ThreadState& ThreadNamed(Session& session, const char* name) {
  const preload::Guard guard;
  snprintf(preload::Self().name, sizeof preload::Self().name, "%s", name);
  return session.Thread();
}

}  // namespace deja::replayer

#endif  // DEJA_TESTS_UNIT_REPLAYER_WRITTEN_RANK_H_
