// The rows of nccl_layout.h. Included once after each nccl.h, inside the definition of `constexpr
// LayoutRow kRows[]`. No guard: it is a list. What a header does not have is left out by its
// version.
// clang-format off
#define V(name) {#name, static_cast<long long>(name)},
#define S(type) {"sizeof " #type, sizeof(type)},
#define O(type, field) {#type "." #field, offsetof(type, field)},

V(ncclSuccess) V(ncclUnhandledCudaError) V(ncclSystemError) V(ncclInternalError) V(ncclInvalidArgument)
V(ncclInvalidUsage) V(ncclRemoteError) V(ncclInProgress)
V(ncclSum) V(ncclProd) V(ncclMax) V(ncclMin) V(ncclAvg) V(ncclNumOps) V(ncclMaxRedOp)
V(ncclInt8) V(ncclChar) V(ncclUint8) V(ncclInt32) V(ncclInt) V(ncclUint32) V(ncclInt64) V(ncclUint64) V(ncclFloat16)
V(ncclHalf) V(ncclFloat32) V(ncclFloat) V(ncclFloat64) V(ncclDouble) V(ncclBfloat16)
V(ncclScalarDevice) V(ncclScalarHostImmediate)
V(NCCL_UNIQUE_ID_BYTES) V(NCCL_CONFIG_UNDEF_INT)
S(ncclUniqueId) S(ncclResult_t) S(ncclDataType_t) S(ncclRedOp_t) S(ncclScalarResidence_t) S(ncclComm_t)
O(ncclConfig_t, size) O(ncclConfig_t, magic) O(ncclConfig_t, version) O(ncclConfig_t, blocking)
O(ncclConfig_t, cgaClusterSize) O(ncclConfig_t, minCTAs) O(ncclConfig_t, maxCTAs) O(ncclConfig_t, netName)
#if NCCL_VERSION_CODE >= 21801
O(ncclConfig_t, splitShare) V(NCCL_SPLIT_NOCOLOR)
#endif
#if NCCL_VERSION_CODE >= 22203
S(ncclSimInfo_t) O(ncclSimInfo_t, size) O(ncclSimInfo_t, magic) O(ncclSimInfo_t, version)
O(ncclSimInfo_t, estimatedTime)
#endif
#if NCCL_VERSION_CODE >= 22403
V(ncclFloat8e4m3) V(ncclFloat8e5m2) V(ncclNumTypes)
#endif
#if NCCL_VERSION_CODE >= 22602
O(ncclConfig_t, trafficClass)
#endif
#if NCCL_VERSION_CODE >= 22703
O(ncclConfig_t, commName) O(ncclConfig_t, collnetEnable) O(ncclConfig_t, CTAPolicy) O(ncclConfig_t, shrinkShare)
O(ncclConfig_t, nvlsCTAs) S(ncclWindow_t)
V(NCCL_WIN_DEFAULT) V(NCCL_WIN_COLL_SYMMETRIC) V(NCCL_SHRINK_DEFAULT) V(NCCL_SHRINK_ABORT) V(NCCL_CTA_POLICY_DEFAULT)
V(NCCL_CTA_POLICY_EFFICIENCY)
#endif
#if NCCL_VERSION_CODE >= 22803
O(ncclConfig_t, nChannelsPerNetPeer) O(ncclConfig_t, nvlinkCentricSched)
V(NCCL_CTA_POLICY_ZERO) V(NCCL_WIN_REQUIRED_ALIGNMENT)
#endif
#if NCCL_VERSION_CODE >= 22807
V(NCCL_REVOKE_DEFAULT)
#endif
#if NCCL_VERSION_CODE >= 22902
O(ncclConfig_t, graphUsageMode) O(ncclConfig_t, numRmaCtx)
S(ncclWaitSignalDesc_t) O(ncclWaitSignalDesc_t, opCnt) O(ncclWaitSignalDesc_t, peer) O(ncclWaitSignalDesc_t, sigIdx)
O(ncclWaitSignalDesc_t, ctx)
#endif
#if NCCL_VERSION_CODE >= 22907
V(ncclStatGpuMemSuspend) V(ncclStatGpuMemSuspended) V(ncclStatGpuMemPersist) V(ncclStatGpuMemTotal)
V(NCCL_SUSPEND_MEM) S(ncclCommMemStat_t)
#endif
#if NCCL_VERSION_CODE >= 23003
O(ncclConfig_t, maxP2pPeers) V(ncclTimeout)
#endif
#if NCCL_VERSION_CODE >= 23007
O(ncclConfig_t, graphStreamOrdering) V(NCCL_WIN_STRICT_ORDERING)
#endif
#if NCCL_VERSION_CODE >= 23102
O(ncclConfig_t, launchOrderImplicit) O(ncclConfig_t, numRmaSig) O(ncclConfig_t, rmaEagerInit)
O(ncclConfig_t, hostCftMode) V(ncclHostCftEnable) V(ncclHostCftDisable) V(ncclHostCftFallback)
S(ncclConfigExt_t) O(ncclConfigExt_t, next) O(ncclConfigExt_t, key) O(ncclConfigExt_t, val)
O(ncclCollConfig_t, size) O(ncclCollConfig_t, magic) O(ncclCollConfig_t, version) O(ncclCollConfig_t, ext)
O(ncclCollConfig_t, minCTAs) O(ncclCollConfig_t, maxCTAs) O(ncclCollConfig_t, nvlsCTAs)
O(ncclCollConfig_t, cgaClusterSize) O(ncclCollConfig_t, algSelection) O(ncclCollConfig_t, forceAlgSelection)
O(ncclCollConfig_t, CTAPolicy) O(ncclCollConfig_t, userProfilerTag)
#endif
#if NCCL_VERSION_CODE >= 23203
O(ncclConfig_t, nvlsHostMode) O(ncclCollConfig_t, launchCompletionEvent) S(ncclCollConfig_t)
V(ncclNvlsHostModeEnable) V(ncclNvlsHostModeDisableTransport) V(ncclNvlsHostModeDisableSymmetricMultimem)
V(ncclNvlsHostModeDisable) V(NCCL_WIN_GIN_ONLY) V(NCCL_WIN_CFT_COUNTED)
S(ncclEncryptionConfig_t) O(ncclEncryptionConfig_t, mode) O(ncclEncryptionConfig_t, psk)
V(NCCL_ENCRYPTION_MODE_NONE) V(NCCL_ENCRYPTION_MODE_PSK)
#endif

#undef V
#undef S
#undef O
