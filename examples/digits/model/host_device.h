// This processor and host memory, as a Device.
#ifndef DEJA_EXAMPLES_DIGITS_MODEL_HOST_DEVICE_H_
#define DEJA_EXAMPLES_DIGITS_MODEL_HOST_DEVICE_H_

#include <memory>

#include "device.h"

namespace digits {

std::unique_ptr<Device> MakeHostDevice();

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_MODEL_HOST_DEVICE_H_
