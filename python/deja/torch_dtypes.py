"""The numbers of element types in a trace."""

import torch

# ncclDataType_t and how many of them an element is; types that NCCL does not have are bytes.
DTYPES = {
    torch.int8: 0,
    torch.uint8: 1,
    torch.bool: 1,
    torch.int32: 2,
    torch.int64: 4,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.bfloat16: 9,
    torch.complex64: 7,
    torch.complex128: 8,
}
