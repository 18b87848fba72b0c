/* nccl.h: NCCL's public C API, as far as Deja knows it (2.17 to 2.32.3), declared without CUDA's
 * headers.
 *
 * Deja builds where neither NCCL nor CUDA is installed, so it carries declarations of the C ABI:
 * names, numbers and layouts. The tests compare them with NVIDIA's header where that is installed.
 * The guard is NVIDIA's on purpose: a translation unit takes one of the two. C99 and C++. NCCL's
 * manual says what each function does.
 *
 * The device-side API (kernels that communicate by themselves, since 2.28) is not here.
 */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* CUDA's driver_types.h declares the same. */
#ifndef __DRIVER_TYPES_H__
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 32
#define NCCL_PATCH 3
#define NCCL_SUFFIX ""

#define NCCL_VERSION_CODE 23203
#define NCCL_VERSION(X, Y, Z) \
  (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm* ncclComm_t;
typedef struct ncclWindow_vidmem* ncclWindow_t;
typedef struct ncclParamHandle* ncclParamHandle_t;
#define NCCL_COMM_NULL NULL

/* Goes by value, i.e. on the stack. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8, /* 2.30; earlier versions have 8 results */
  ncclNumResults = 9
} ncclResult_t;

#define NCCL_API_MAGIC 0xcafebeef
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_UNDEF_FLOAT -1.0f

#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_STRICT_ORDERING 0x02
#define NCCL_WIN_GIN_ONLY 0x04
#define NCCL_WIN_CFT_COUNTED 0x08
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01

#define NCCL_REVOKE_DEFAULT 0x00

#define NCCL_SUSPEND_MEM 0x01

typedef enum { /* 2.31 */
               ncclHostCftDefault = NCCL_CONFIG_UNDEF_INT,
               ncclHostCftEnable = 1,
               ncclHostCftDisable = 2,
               ncclHostCftFallback = 3
} ncclHostCftMode_t;

typedef enum { /* 2.32; all but the first and the last are bits */
               ncclNvlsHostModeDefault = NCCL_CONFIG_UNDEF_INT,
               ncclNvlsHostModeEnable = 0,
               ncclNvlsHostModeDisableTransport = 1 << 0,
               ncclNvlsHostModeDisableSymmetricMultimem = 1 << 1,
               ncclNvlsHostModeDisable = INT_MAX
} ncclNvlsHostMode_t;

/* The structure grows at its end. A caller compiled against another version passes fewer or more
 * fields: `size` says how many bytes there are, and nothing after them may be read. 2.17: 40
 * bytes, 2.18-2.26: 48, 2.27: 72, 2.28: 80, 2.29: 88, 2.30: 96, 2.31: 112, 2.32: 120. */
typedef struct ncclConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;       /* 2.18 */
  int trafficClass;     /* 2.26, in what was padding */
  const char* commName; /* 2.27 and the four that follow */
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer; /* 2.28, both */
  int nvlinkCentricSched;
  int graphUsageMode; /* 2.29, both */
  int numRmaCtx;
  int maxP2pPeers;         /* 2.30 */
  int graphStreamOrdering; /* 2.30.7, in what was padding */
  int launchOrderImplicit; /* 2.31 and the three that follow */
  int numRmaSig;
  int rmaEagerInit;
  int hostCftMode;
  int nvlsHostMode; /* 2.32 */
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                          \
  {                                                      \
    sizeof(ncclConfig_t),      /* size */                \
        NCCL_API_MAGIC,        /* magic */               \
        NCCL_VERSION_CODE,     /* version */             \
        NCCL_CONFIG_UNDEF_INT, /* blocking */            \
        NCCL_CONFIG_UNDEF_INT, /* cgaClusterSize */      \
        NCCL_CONFIG_UNDEF_INT, /* minCTAs */             \
        NCCL_CONFIG_UNDEF_INT, /* maxCTAs */             \
        NCCL_CONFIG_UNDEF_PTR, /* netName */             \
        NCCL_CONFIG_UNDEF_INT, /* splitShare */          \
        NCCL_CONFIG_UNDEF_INT, /* trafficClass */        \
        NCCL_CONFIG_UNDEF_PTR, /* commName */            \
        NCCL_CONFIG_UNDEF_INT, /* collnetEnable */       \
        NCCL_CONFIG_UNDEF_INT, /* CTAPolicy */           \
        NCCL_CONFIG_UNDEF_INT, /* shrinkShare */         \
        NCCL_CONFIG_UNDEF_INT, /* nvlsCTAs */            \
        NCCL_CONFIG_UNDEF_INT, /* nChannelsPerNetPeer */ \
        NCCL_CONFIG_UNDEF_INT, /* nvlinkCentricSched */  \
        NCCL_CONFIG_UNDEF_INT, /* graphUsageMode */      \
        NCCL_CONFIG_UNDEF_INT, /* numRmaCtx */           \
        NCCL_CONFIG_UNDEF_INT, /* maxP2pPeers */         \
        NCCL_CONFIG_UNDEF_INT, /* graphStreamOrdering */ \
        NCCL_CONFIG_UNDEF_INT, /* launchOrderImplicit */ \
        NCCL_CONFIG_UNDEF_INT, /* numRmaSig */           \
        NCCL_CONFIG_UNDEF_INT, /* rmaEagerInit */        \
        NCCL_CONFIG_UNDEF_INT, /* hostCftMode */         \
        NCCL_CONFIG_UNDEF_INT  /* nvlsHostMode */        \
  }

/* An option of a vendor's library, in a list that ends with NULL. NCCL ignores it. */
typedef struct ncclConfigExt {
  struct ncclConfigExt* next;
  struct {
    int vendorId;
    int optionId;
  } key;
  union {
    int i;
    const char* s;
    void* raw;
  } val;
} ncclConfigExt_t;

/* What one collective is given, the same on every rank. It grows as ncclConfig_t does. 2.31: 64
 * bytes, 2.32: 72. */
typedef struct ncclCollConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclConfigExt_t* ext;
  int minCTAs;
  int maxCTAs;
  int nvlsCTAs;
  int cgaClusterSize;
  const char* algSelection;
  int forceAlgSelection;
  int CTAPolicy;
  uint64_t userProfilerTag;
  cudaEvent_t launchCompletionEvent; /* 2.32 */
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER                        \
  {                                                        \
    sizeof(ncclCollConfig_t),  /* size */                  \
        NCCL_API_MAGIC,        /* magic */                 \
        NCCL_VERSION_CODE,     /* version */               \
        NCCL_CONFIG_UNDEF_PTR, /* ext */                   \
        NCCL_CONFIG_UNDEF_INT, /* minCTAs */               \
        NCCL_CONFIG_UNDEF_INT, /* maxCTAs */               \
        NCCL_CONFIG_UNDEF_INT, /* nvlsCTAs */              \
        NCCL_CONFIG_UNDEF_INT, /* cgaClusterSize */        \
        NCCL_CONFIG_UNDEF_PTR, /* algSelection */          \
        1,                     /* forceAlgSelection */     \
        NCCL_CONFIG_UNDEF_INT, /* CTAPolicy */             \
        0,                     /* userProfilerTag */       \
        NCCL_CONFIG_UNDEF_PTR  /* launchCompletionEvent */ \
  }

/* How NCCL's own sockets are encrypted, since 2.32. */
typedef enum { NCCL_ENCRYPTION_MODE_NONE = 0, NCCL_ENCRYPTION_MODE_PSK = 1 } ncclEncryptionMode_t;

typedef struct ncclEncryptionConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int mode;
  const char* psk;
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER                                                        \
  {                                                                                               \
    sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_ENCRYPTION_MODE_NONE, \
        NCCL_CONFIG_UNDEF_PTR                                                                     \
  }

typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_MAGIC 0x74685283
#define NCCL_SIM_INFO_INITIALIZER \
  { sizeof(ncclSimInfo_t), NCCL_SIM_INFO_MAGIC, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT }

typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5, /* and the first value of an operator that the program makes */
  ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10, /* 2.24, both */
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

typedef enum {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

typedef struct {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
} ncclWaitSignalDesc_t;

/* Each function has a second name with a p, for tools that put themselves in front of the first. */
#define DEJA_NCCL_DECLARE(result, name, params) \
  result name params;                           \
  result p##name params;

DEJA_NCCL_DECLARE(ncclResult_t, ncclMemAlloc, (void** ptr, size_t size))
DEJA_NCCL_DECLARE(ncclResult_t, ncclMemFree, (void* ptr))
DEJA_NCCL_DECLARE(ncclResult_t, ncclGetVersion, (int* version))
DEJA_NCCL_DECLARE(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * uniqueId))

DEJA_NCCL_DECLARE(ncclResult_t, ncclCommInitRankConfig,
                  (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank,
                   ncclConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommInitRank,
                  (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommInitAll, (ncclComm_t * comm, int ndev, const int* devlist))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommInitRankScalable,
                  (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                   ncclConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommFinalize, (ncclComm_t comm))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommDestroy, (ncclComm_t comm))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommAbort, (ncclComm_t comm))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommRevoke, (ncclComm_t comm, int revokeFlags))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommSplit,
                  (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommShrink,
                  (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                   ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommGetUniqueId, (ncclComm_t comm, ncclUniqueId* uniqueId))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommGrow,
                  (ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank,
                   ncclComm_t* newcomm, ncclConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommSuspend, (ncclComm_t comm, int flags))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommResume, (ncclComm_t comm))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommMemStats,
                  (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value))

DEJA_NCCL_DECLARE(const char*, ncclGetErrorString, (ncclResult_t result))
DEJA_NCCL_DECLARE(const char*, ncclGetLastError, (ncclComm_t comm))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int* count))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int* device))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int* rank))
DEJA_NCCL_DECLARE(void, ncclResetDebugInit, (void)) /* deprecated */

DEJA_NCCL_DECLARE(ncclResult_t, ncclCommRegister,
                  (const ncclComm_t comm, void* buff, size_t size, void** handle))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void* handle))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommWindowRegister,
                  (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags))
DEJA_NCCL_DECLARE(ncclResult_t, ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t win))
DEJA_NCCL_DECLARE(ncclResult_t, ncclWinGetUserPtr,
                  (ncclComm_t comm, ncclWindow_t win, void** outUserPtr))

DEJA_NCCL_DECLARE(ncclResult_t, ncclRedOpCreatePreMulSum,
                  (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype,
                   ncclScalarResidence_t residence, ncclComm_t comm))
DEJA_NCCL_DECLARE(ncclResult_t, ncclRedOpDestroy, (ncclRedOp_t op, ncclComm_t comm))

DEJA_NCCL_DECLARE(ncclResult_t, ncclReduce,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclBcast,
                  (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                   cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclBroadcast,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   int root, ncclComm_t comm, cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclAllReduce,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclReduceScatter,
                  (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclAllGather,
                  (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                   ncclComm_t comm, cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclAlltoAll,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   ncclComm_t comm, cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclGather,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   int root, ncclComm_t comm, cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclScatter,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   int root, ncclComm_t comm, cudaStream_t stream))
/* The same with a configuration, since 2.31. NULL: as without one. */
DEJA_NCCL_DECLARE(ncclResult_t, ncclAllReduceConfig,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                   const ncclCollConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclBroadcastConfig,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclReduceConfig,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                   const ncclCollConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclAllGatherConfig,
                  (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                   ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclReduceScatterConfig,
                  (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                   const ncclCollConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclAlltoAllConfig,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclGatherConfig,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclScatterConfig,
                  (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                   int root, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config))
DEJA_NCCL_DECLARE(ncclResult_t, ncclSetEncryption, (const ncclEncryptionConfig_t* config))

DEJA_NCCL_DECLARE(ncclResult_t, ncclSend,
                  (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                   ncclComm_t comm, cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclRecv,
                  (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                   cudaStream_t stream))

DEJA_NCCL_DECLARE(ncclResult_t, ncclPutSignal,
                  (const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
                   ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
                   unsigned int flags, ncclComm_t comm, cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclSignal,
                  (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                   cudaStream_t stream))
DEJA_NCCL_DECLARE(ncclResult_t, ncclWaitSignal,
                  (int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm,
                   cudaStream_t stream))

DEJA_NCCL_DECLARE(ncclResult_t, ncclGroupStart, (void))
DEJA_NCCL_DECLARE(ncclResult_t, ncclGroupEnd, (void))
DEJA_NCCL_DECLARE(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t * simInfo))

DEJA_NCCL_DECLARE(ncclResult_t, ncclParamBind, (ncclParamHandle_t * out, const char* key))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetI8, (ncclParamHandle_t h, int8_t* out))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetI16, (ncclParamHandle_t h, int16_t* out))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetI32, (ncclParamHandle_t h, int32_t* out))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetI64, (ncclParamHandle_t h, int64_t* out))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetU8, (ncclParamHandle_t h, uint8_t* out))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetU16, (ncclParamHandle_t h, uint16_t* out))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetU32, (ncclParamHandle_t h, uint32_t* out))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetU64, (ncclParamHandle_t h, uint64_t* out))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetStr, (ncclParamHandle_t h, const char** out))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGet,
                  (ncclParamHandle_t h, void* out, int maxLen, int* len))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetParameter,
                  (const char* key, const char** value, int* valueLen))
DEJA_NCCL_DECLARE(ncclResult_t, ncclParamGetAllParameterKeys, (const char*** table, int* tableLen))
DEJA_NCCL_DECLARE(void, ncclParamDumpAll, (void))

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* NCCL_H_ */
