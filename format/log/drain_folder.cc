// Drainer: how a process gets its folder in the trace.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "format/layout/mark.h"
#include "format/layout/rank_folder.h"
#include "format/log/drainer.h"
#include "format/log/rank_log.h"
#include "format/wire/format_version.h"

namespace deja::format {
namespace {

constexpr uint32_t kMaxAttempts = 100000;

Status RenameNew(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return FailErrno("renaming: " + from, errno);
  // A file system without that flag: take the name with an empty folder, which rename replaces.
  if (mkdir(to.c_str(), 0700) != 0 || rename(from.c_str(), to.c_str()) != 0) {
    return FailErrno("renaming: " + from, errno);
  }
  return {};
}

}  // namespace

Status Drainer::MoveTo(const std::string& target, const TraceHeader& header) {
  DEJA_RETURN_IF_ERROR(writer_->SetHeader(header));
  // Before the name: who finds the folder must find its tail wanted.
  tail_.header().state.store(static_cast<uint32_t>(TailState::kRank), std::memory_order_release);
  DEJA_RETURN_IF_ERROR(RenameNew(writer_->folder(), target));
  writer_->Renamed(target);
  folder_ = target;
  return {};
}

Status Drainer::MoveToRankFolder(TraceHeader& header) {
  for (uint32_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const std::string target = trace_dir_ + "/" + MakeRankFolderName(header.rank, attempt);
    struct stat info {};
    if (lstat(target.c_str(), &info) == 0) continue;
    header.attempt = attempt;
    Status moved = MoveTo(target, header);
    if (moved) return moved;
    if (moved.error().sys_errno != EEXIST && moved.error().sys_errno != ENOTEMPTY) return moved;
  }
  return Fail(ErrorCode::kLimit,
              "making a folder in " + trace_dir_ + ": there are too many attempts of one rank");
}

Status Drainer::MoveToChildFolder(TraceHeader& header) {
  return MoveTo(trace_dir_ + "/" + MakeChildFolderName(tail_.process_name()), header);
}

Status Drainer::Move(TraceHeader& header, bool as_rank) {
  // Marks that were there before this process are not for it.
  while (access(MarkPath(trace_dir_, next_mark_).c_str(), F_OK) == 0) ++next_mark_;
  const std::string id = tail_.id();
  header.tail = {tail_.path(), id};
  header.format_major = kFormatMajor;
  header.format_minor = kFormatMinor;
  if (header.producer.empty()) header.producer = "deja " DEJA_VERSION;
  return as_rank ? MoveToRankFolder(header) : MoveToChildFolder(header);
}

Status Drainer::BecomeRank(TraceHeader header) {
  const ScopedSignalBlock no_signals;
  mutex_.lock();
  Status done;
  if ((is_rank() && !is_child_) || finished_.load(std::memory_order_relaxed) != 0) {
    done = Fail(ErrorCode::kInvalidArgument, "this process is a rank already, or ends");
  } else {
    said_ = true;  // a failure in here is reported at its end
    label_ = "rank " + std::to_string(header.rank);
    if (events_off_.load() || !EnsureWriter()) {  // it could not spill, or cannot write
      done = Fail(ErrorCode::kIo, degraded_reason_);
    } else {
      done = Move(header, true);
    }
    said_ = false;
    if (done) {
      is_child_ = false;
      window_.BecomeRank(EarlierAttemptBytes(trace_dir_, header.rank, header.attempt));
      is_rank_.store(true, std::memory_order_release);
      Publish(false);
    } else {
      Say(done.error().message + "; this rank is not recorded");
      EventsFailed(done.error());
      RemovePending();
      tail_.header().state.store(static_cast<uint32_t>(TailState::kOpen));
      tail_.Remove();
    }
  }
  mutex_.unlock();
  if (done) EnsureThread();
  return done;
}

// The thread that drains is made when there is something to drain: most children are short.
Status Drainer::BecomeChild(TraceHeader header) {
  const ScopedSignalBlock no_signals;
  mutex_.lock();
  Status done;
  if (is_rank() || finished_.load(std::memory_order_relaxed) != 0) {
    done = Fail(ErrorCode::kInvalidArgument, "this process has a folder already, or ends");
  } else {
    // Without a label: most of these belong to no rank, and no user wants to read of them.
    if (events_off_.load() || !EnsureWriter()) {
      done = Fail(ErrorCode::kIo, degraded_reason_);
    } else {
      done = Move(header, false);
      // They open again when something is written. Until then a short command has no file open on a
      // disk that it may be about to unmount.
      writer_->CloseInChild();
    }
    is_child_ = done.has_value();
    is_rank_.store(is_child_, std::memory_order_release);
    Publish(false);  // a short one says no more of it: who completes its folder adds the rest
    if (!done) {
      EventsFailed(done.error());
      RemovePending();
      tail_.header().state.store(static_cast<uint32_t>(TailState::kOpen));
      tail_.Remove();
    }
  }
  mutex_.unlock();
  return done;
}

void Drainer::RemovePending() {
  if (writer_ == nullptr) return;
  const std::string folder = writer_->folder();
  writer_.reset();
  for (const char* name : {kEventsFile, kPayloadsFile}) {
    unlink((folder + "/" + name).c_str());
    unlink((folder + "/" + name + ".next").c_str());
  }
  rmdir(folder.c_str());
}

}  // namespace deja::format
