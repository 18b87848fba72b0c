/* A CUDA driver for machines that have none: libcuda.so.1 of the tests.
 *
 * Streams are threads that run their work late and at random distances (CUDA_SIM_DELAY_US, at most
 * 200 by default); device memory is an address range that the processor cannot touch, as in
 * reality, with the bytes at another address; kernels are host functions. What a real driver
 * refuses is refused: what breaks a capture, events of another context, calls before cuInit. A call
 * in a host function, of which a real one makes an error or a deadlock, ends the process.
 * Devices: CUDA_SIM_DEVICES (2), of which CUDA_VISIBLE_DEVICES shows those that it names (by
 * number; GPU-x1 and MIG-x1: the second one). CUDA_SIM_MEMORY limits the memory of each,
 * CUDA_SIM_KEY lets processes share it, and then they can swap each other out (sim_board.h,
 * sim_checkpoint.cc). CUDA_SIM_CONTEXT and CUDA_SIM_MODULE: bytes of a device that each context,
 * and each module or library, takes; CUDA_SIM_KERNEL: each kernel, when it is launched first. Only
 * what tests use is here.
 *
 * There are libraries for drivers of several versions of CUDA, and for such as do not work
 * (CMakeLists.txt).
 *
 * PTX is taken if it is that of digest/digest_kernel.cu or examples/digits/cuda/kernels.cu,
 * whose kernels run on the processor (digest_grid.h, sim_digits.h); CUDA_SIM_PTX=no refuses it, and
 * CUDA_SIM_PTX=wrong has the former make mistakes. */
#ifndef DEJA_TESTS_FAKES_CUDA_CUDA_SIM_H_
#define DEJA_TESTS_FAKES_CUDA_CUDA_SIM_H_

#include "include/compat/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What cuModuleLoadData takes: kernels by name, ended by a null name. A kernel gets copies of what
 * kernelParams pointed to; each parameter has eight bytes. */
typedef struct cusim_kernel {
  const char* name;
  unsigned int params;
  void (*run)(void** params);
} cusim_kernel;

/* Where the bytes of an address lie: device memory's elsewhere, others' where they are. */
void* cusim_backing(const void* address);
/* How often a kernel of digest_kernel.cu was launched so far. */
int cusim_digest_launches(void);
/* Host functions that were put on streams so far. */
int cusim_host_functions(void);
/* cudaGraphSetConditional, for kernels. */
void cusim_set_conditional(CUgraphConditionalHandle handle, unsigned int value);
/* Captures that were broken so far. */
int cusim_broken_captures(void);

CUresult cuInit(unsigned int flags);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDriverGetVersion(int* version);
CUresult cuGetErrorString(CUresult error, const char** text);
CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                          unsigned long long flags);
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                             unsigned long long flags, CUdriverProcAddressQueryResult* status);
/* 0 but for CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, without which PyTorch does not offer
 * ncclMemAlloc. */
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinity, int count,
                        unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags,
                        CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext* context);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned int element);
CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v2* what);
CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v2* what);
CUresult cuArrayDestroy(CUarray array);
CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR_v2* what,
                                unsigned int levels);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream);
CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes);
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
/* Nothing can be mapped from these. */
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags);
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned int flags);
CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned int flags);
/* Another address of registered memory, by which alone devices reach it (but for copies). */
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned int flags);
CUresult cuMemHostUnregister(void* memory);
CUresult cuMemFreeHost(void* memory);
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream);
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuStreamCreate(CUstream* stream, unsigned int flags);
/* Its thread stays: a stream that is destroyed does what it has been given. */
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, unsigned int value,
                                unsigned int flags);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status);
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* after,
                                     const CUgraphEdgeData* edges, size_t count,
                                     CUstreamCaptureMode mode);
/* As CUDA 10.1 has it. */
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status,
                                unsigned long long* id);
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode);
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphClone(CUgraph* clone, CUgraph original);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph,
                                        CUcontext context, unsigned int at_launch,
                                        unsigned int flags);
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                        CUgraphNodeParams* params);
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                           const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* result);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count);
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* params);
CUresult cuEventCreate(CUevent* event, unsigned int flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data);
CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values);
CUresult cuModuleUnload(CUmodule module);
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit_options,
                           void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                           void** values, unsigned int count);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void** params, void** extra);
/* PyTorch insists that a driver has these. They are not supported, and say so on stderr, too. */
CUresult cuMemAddressFree(void);
CUresult cuMemAddressReserve(void);
CUresult cuMemExportToShareableHandle(void);
CUresult cuMemGetAllocationGranularity(void);
CUresult cuMemImportFromShareableHandle(void);
CUresult cuMemMap(void);
CUresult cuMemSetAccess(void);
CUresult cuMemUnmap(void);
CUresult cuMemsetD32Async(void);
CUresult cuMulticastAddDevice(void);
CUresult cuMulticastBindMem(void);
CUresult cuMulticastCreate(void);
CUresult cuMulticastUnbind(void);
CUresult cuStreamWriteValue32_v2(void);
CUresult cuCheckpointProcessGetState(int pid, CUprocessState* state);
CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args);
CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* args);
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* args);
CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* args);

#ifdef __cplusplus
}
#endif

#endif /* DEJA_TESTS_FAKES_CUDA_CUDA_SIM_H_ */
