// The simulated driver's contexts, streams and events. Nothing is ever freed: threads of streams
// outlive what the program does at its end.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_STREAM_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "include/compat/cuda.h"

namespace cusim {

// An operation of a graph.
struct Node {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::function<void()> work;
  // Makes the work when the graph is launched; null: the work is always the same.
  std::function<std::function<void()>()> bind{};
  std::vector<CUgraph> bodies{};  // of a conditional node
};

// The value that conditional nodes look at.
struct Condition {
  unsigned int at_launch = 0;
  bool set_at_launch = false;
  std::atomic<unsigned int> value{0};
};

}  // namespace cusim

// Which node of a graph, and of what was cloned or instantiated from it.
struct CUgraphNode_st {
  size_t place = 0;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
};

// A sequence of operations, in an order that respects what depends on what.
struct CUgraph_st {
  std::vector<cusim::Node> nodes;
  std::vector<CUgraphNode> handles;  // once they were asked for
  std::vector<cusim::Condition*> conditions;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  unsigned long long capture_id = 0;
  std::thread::id thread;
  bool broken = false;
  bool destroyed = false;
  int executables = 0;  // that are not destroyed
};

namespace cusim {

// A point in a stream that is reached once.
class Mark {
 public:
  void Reach();
  void Wait();
  bool reached();
  // The same, and says when; 0: not known.
  void ReachAt(uint64_t time_ns);
  uint64_t time_ns();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  uint64_t time_ns_ = 0;
};
using MarkPtr = std::shared_ptr<Mark>;

// Any stream of the process has something to do.
bool StreamsHaveWork();

}  // namespace cusim

struct CUctx_st {
  CUdevice device = 0;
  std::atomic<int> work{0};  // of all its streams, and not done
  std::mutex mutex;
  std::vector<CUstream_st*> streams;
  std::vector<CUstream_st*> blocking;  // streams that the legacy stream orders itself with
  CUstream_st* legacy = nullptr;
  void* memory = nullptr;  // of the device, that it takes itself
};

struct CUstream_st {
  CUstream_st(CUcontext context, bool is_blocking);

  // Puts work at the end, or into the graph that is being captured.
  CUresult Put(std::function<void()> work, CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY);
  // Into the graph that is being captured: a node whose work is made at each launch.
  CUresult PutAtLaunch(CUgraphNodeType type, std::function<std::function<void()>()> bind);
  // Where everything that has been put so far is done.
  cusim::MarkPtr Tail();

  CUcontext const context;
  const bool blocking;
  CUgraph_st* capture = nullptr;  // under the driver's mutex

 private:
  void Append(std::function<void()> work);
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::function<void()>, cusim::MarkPtr>> queue_;
  cusim::MarkPtr tail_;
};

struct CUevent_st {
  explicit CUevent_st(CUcontext its_context) : context(its_context) {}
  CUcontext const context;
  bool timed = false;
  std::mutex mutex;
  cusim::MarkPtr mark;            // null: never recorded
  CUgraph_st* capture = nullptr;  // it was recorded while this was captured
};

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_STREAM_H_
