/*
 * libhdf5, loaded when the first HDF5 file is opened or created: a program linked with Cornu needs
 * it neither to link nor to start.
 */
#ifndef CORNU_NN_HDF5_LIBRARY_INTERNAL_H
#define CORNU_NN_HDF5_LIBRARY_INTERNAL_H

#include "../../device/status_internal.h"

/* Loads libhdf5 on the first call, for good, and locks it: most builds are not thread-safe, so
 * other threads wait until this one has left as often as it has entered. CORNU_ERR_UNSUPPORTED,
 * without the lock, if the library is missing or not of the version that Cornu was built for. Does
 * not call H5open. */
CornuStatus cornu__hdf5_enter(void);
void        cornu__hdf5_leave(void);

/* Defined if Cornu is built with libhdf5's header, as the file name of the library:
 * libhdf5_serial.so.103. */
#ifdef CORNU_HDF5

#include <hdf5.h>

/* In macros like H5F_ACC_RDONLY these would call a linked libhdf5. */
#undef H5CHECK
#define H5CHECK
#undef H5OPEN
#define H5OPEN

/* The symbols used, without "H5": functions, and variables (..._g) that H5open sets. */
#define CORNU__HDF5_MAP(X)                                                                        \
    X(dont_atexit) X(get_libversion) X(open)                                                      \
    X(Aclose) X(Acreate_by_name) X(Aexists) X(Aget_space) X(Aget_type) X(Aopen) X(Aread)          \
    X(Awrite)                                                                                     \
    X(Dclose) X(Dcreate2) X(Dget_create_plist) X(Dget_space) X(Dget_storage_size) X(Dget_type)    \
    X(Dread) X(Dwrite)                                                                            \
    X(Eget_auto2) X(Eset_auto2)                                                                   \
    X(Fclose) X(Fcreate) X(Fflush) X(Fget_file_image) X(Fopen)                                    \
    X(Gclose) X(Gcreate2) X(Gget_info)                                                            \
    X(Iget_type)                                                                                  \
    X(Lexists) X(Lget_info) X(Lget_name_by_idx)                                                   \
    X(Oclose) X(Oget_info1) X(Oopen)                                                              \
    X(PLset_loading_state)                                                                        \
    X(P_CLS_DATASET_CREATE_ID_g) X(P_CLS_FILE_ACCESS_ID_g) X(P_CLS_LINK_CREATE_ID_g)              \
    X(Pclose) X(Pcreate) X(Pget_external_count) X(Pget_filter2) X(Pget_layout) X(Pget_nfilters)   \
    X(Pset_create_intermediate_group) X(Pset_fapl_core) X(Pset_file_image)                        \
    X(Pset_obj_track_times)                                                                       \
    X(Sclose) X(Screate) X(Screate_simple) X(Sget_simple_extent_dims)                             \
    X(Sget_simple_extent_ndims) X(Sget_simple_extent_npoints) X(Sget_simple_extent_type)          \
    X(T_C_S1_g) X(T_IEEE_F32LE_g) X(T_NATIVE_DOUBLE_g) X(T_NATIVE_FLOAT_g) X(T_NATIVE_INT32_g)    \
    X(T_NATIVE_INT64_g) X(T_NATIVE_UINT8_g) X(T_STD_I8LE_g)                                       \
    X(Tclose) X(Tcopy) X(Tcreate) X(Tget_class) X(Tget_sign) X(Tget_size) X(Tis_variable_str)     \
    X(Tset_cset) X(Tset_ebias) X(Tset_fields) X(Tset_size)

typedef struct {
#define CORNU__HDF5_FIELD(name) __typeof__(H5##name) *name;
    CORNU__HDF5_MAP(CORNU__HDF5_FIELD)
#undef CORNU__HDF5_FIELD
} CornuHdf5Library;

/* Its addresses, once cornu__hdf5_enter has succeeded. */
extern CornuHdf5Library cornu__hdf5_library;

#endif

#endif
