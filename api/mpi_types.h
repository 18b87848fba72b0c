// MPI's types as far as a hook needs them: how an argument is passed, and no more.
//
// MPI leaves to each implementation what a handle is: Open MPI's are pointers, MPICH's are ints. A
// hook takes a word, of which an int fills the lower half, so that one library serves both
// (docs/decisions/0004-mpi-without-its-header.md). For inclusion where mpi.h is not.
#ifndef DEJA_API_MPI_TYPES_H_
#define DEJA_API_MPI_TYPES_H_

#include <cstdint>

namespace deja::mpi_types {

using MPI_Comm = uint64_t;
using MPI_Datatype = uint64_t;
using MPI_Errhandler = uint64_t;
using MPI_File = uint64_t;
using MPI_Group = uint64_t;
using MPI_Info = uint64_t;
using MPI_Message = uint64_t;
using MPI_Op = uint64_t;
using MPI_Request = uint64_t;
using MPI_Win = uint64_t;

using MPI_Aint = int64_t;
using MPI_Count = int64_t;
using MPI_Offset = int64_t;
struct MPI_Status;
using DejaIntTriples = int (*)[3];

// Callbacks are only passed on.
using MPI_Comm_copy_attr_function = void();
using MPI_Comm_delete_attr_function = void();
using MPI_Comm_errhandler_function = void();
using MPI_Copy_function = void();
using MPI_Datarep_conversion_function = void();
using MPI_Datarep_extent_function = void();
using MPI_Delete_function = void();
using MPI_File_errhandler_function = void();
using MPI_Grequest_cancel_function = void();
using MPI_Grequest_free_function = void();
using MPI_Grequest_query_function = void();
using MPI_Handler_function = void();
using MPI_Type_copy_attr_function = void();
using MPI_Type_delete_attr_function = void();
using MPI_User_function = void();
using MPI_Win_copy_attr_function = void();
using MPI_Win_delete_attr_function = void();
using MPI_Win_errhandler_function = void();

}  // namespace deja::mpi_types

#endif  // DEJA_API_MPI_TYPES_H_
