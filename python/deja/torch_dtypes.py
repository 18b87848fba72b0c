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

ELEMENT_BYTES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2)  # by number

# The same with the bytes that an element of torch's has.
SIZED_DTYPES = {
    kind: (number, ELEMENT_BYTES[number] * (2 if kind.is_complex else 1)) for kind, number in DTYPES.items()
}
