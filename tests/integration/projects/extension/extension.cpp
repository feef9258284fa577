#include <pybind11/pybind11.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

PYBIND11_MODULE(extension, module) {
    module.def("compiler", [] { return TEXT(__GNUC__) "." TEXT(__GNUC_MINOR__) "." TEXT(__GNUC_PATCHLEVEL__); });
    module.def("abi", [] { return _GLIBCXX_USE_CXX11_ABI; });
}
