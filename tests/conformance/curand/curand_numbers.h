// Names and numbers of cuRAND's header, as one of the two headers has them.
#ifndef DEJA_TESTS_CONFORMANCE_CURAND_CURAND_NUMBERS_H_
#define DEJA_TESTS_CONFORMANCE_CURAND_CURAND_NUMBERS_H_

#include <map>
#include <string>

using CurandNumbers = std::map<std::string, long long>;

CurandNumbers CompatCurandNumbers();
// Of the header that is installed. The file does not compile where that declares a function of the
// table otherwise.
CurandNumbers SystemCurandNumbers();

#endif  // DEJA_TESTS_CONFORMANCE_CURAND_CURAND_NUMBERS_H_
