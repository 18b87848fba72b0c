// Numbers of system calls that the C library's headers may be too old for, of x86-64.
#ifndef DEJA_CLI_FENCE_LATE_SYSCALLS_H_
#define DEJA_CLI_FENCE_LATE_SYSCALLS_H_

namespace deja::cli {

constexpr long kSysPidfdSendSignal = 424;
constexpr long kSysIoUringSetup = 425;
constexpr long kSysIoUringEnter = 426;
constexpr long kSysIoUringRegister = 427;
constexpr long kSysOpenTree = 428;
constexpr long kSysMoveMount = 429;
constexpr long kSysFsopen = 430;
constexpr long kSysFsconfig = 431;
constexpr long kSysFsmount = 432;
constexpr long kSysFspick = 433;
constexpr long kSysCloseRange = 436;
constexpr long kSysOpenat2 = 437;
constexpr long kSysPidfdGetfd = 438;
constexpr long kSysMountSetattr = 442;
constexpr long kSysQuotactlFd = 443;
constexpr long kSysProcessMrelease = 448;
constexpr long kSysFchmodat2 = 452;
constexpr long kSysGetxattrat = 464;
constexpr long kSysListxattrat = 465;
constexpr long kSysFileGetattr = 468;

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_LATE_SYSCALLS_H_
