#include "hdf5_internal.h"
#include "hdf5_library_internal.h"

#include "../../device/memory_internal.h"
#include "../../device/files/file_internal.h"

#include <stdint.h>
#include <string.h>

#ifdef CORNU_HDF5

#if !H5_VERSION_GE(1, 12, 0)
typedef H5O_info_t H5O_info1_t;
#endif

static const CornuHdf5Library *const h5 = &cornu__hdf5_library;

struct CornuHdf5 {
    hid_t       file;
    const unsigned char *bytes;   /* the caller's; NULL for a new file */
    size_t      size;
    H5E_auto2_t print;        /* the error handler before, to be restored */
    void       *print_to;
};

enum { GROWTH = 1 << 16, MAX_TEXTS = 1 << 20, MAX_TEXT = 1 << 26, MUCH = 1 << 20 };
enum { MAX_DEFLATE_RATIO = 1032 };

static CornuStatus damaged(const char *path, const char *what)
{
    return cornu__fail(CORNU_ERR_FORMAT, "\"%.200s\" %s", path, what);
}

/* ---- Files ---- */

/* Checks what libhdf5 1.10.8 trusts when it allocates memory or follows an address: offsets and
 * sizes have 8 bytes, addresses count from the start of the file, the file ends within the bytes
 * given, and no driver information follows. Source of the offsets: "HDF5 File Format
 * Specification", version 2.0, II.A. */
static bool looks_whole(const unsigned char *bytes, size_t size)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    const size_t      length = sizeof signature - 1;
    if (size < 96 || memcmp(bytes, signature, length)) return false;
    const int  version = bytes[length];
    const bool old = version < 2;
    const int  sizes = old ? 13 : 9, base = version == 0 ? 24 : version == 1 ? 28 : 12;
    return bytes[sizes] == 8 && bytes[sizes + 1] == 8 &&
           cornu__little_endian(bytes + base, 8) == 0 &&
           cornu__little_endian(bytes + base + 16, 8) <= size &&
           (!old || cornu__little_endian(bytes + base + 24, 8) == UINT64_MAX);
}

/* `image` is NULL for a new file. */
static CornuHdf5 *make(const void *image, size_t size)
{
    if (cornu_error_pending()) return NULL;
    if (cornu__hdf5_enter() != CORNU_OK) return cornu__null();
    CornuHdf5 *file = cornu__allocate(1, sizeof *file);
    if (!file) {
        cornu__hdf5_leave();
        return cornu__null();
    }
    file->bytes = image;
    file->size = size;
    h5->open();
    h5->Eget_auto2(H5E_DEFAULT, &file->print, &file->print_to);
    h5->Eset_auto2(H5E_DEFAULT, NULL, NULL);
    h5->PLset_loading_state(0);
    const hid_t access = h5->Pcreate(*h5->P_CLS_FILE_ACCESS_ID_g);
    herr_t      status = h5->Pset_fapl_core(access, GROWTH, 0);
    /* libhdf5 copies the image and does not write to it. */
    if (status >= 0 && image) status = h5->Pset_file_image(access, (void *)image, size);
    file->file = status < 0 ? -1
               : image      ? h5->Fopen("memory", H5F_ACC_RDONLY, access)
                            : h5->Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    h5->Pclose(access);
    if (file->file >= 0) return file;
    cornu__hdf5_close(file);
    if (image) return cornu__fail_null(CORNU_ERR_FORMAT, "truncated, or not an HDF5 file");
    return cornu__fail_null(CORNU_ERR_MEMORY, "no memory for an HDF5 file");
}

CornuHdf5 *cornu__hdf5_open(const void *bytes, size_t size)
{
    if (looks_whole(bytes, size)) return make(bytes, size);
    return cornu__fail_null(CORNU_ERR_FORMAT, "truncated, or not an HDF5 file");
}

CornuHdf5 *cornu__hdf5_create(void) { return make(NULL, 0); }

void cornu__hdf5_close(CornuHdf5 *file)
{
    if (!file) return;
    if (file->file >= 0) h5->Fclose(file->file);
    h5->Eset_auto2(H5E_DEFAULT, file->print, file->print_to);
    cornu__release(file);
    cornu__hdf5_leave();
}

/* ---- Looking up ---- */

/* Each link of the path must be a hard link: to an object of the file itself. */
CornuStatus cornu__hdf5_has(CornuHdf5 *file, const char *path, bool *has)
{
    char part[1024];
    *has = false;
    for (const char *end = path; *end;) {
        end += strcspn(end, "/");
        const size_t length = (size_t)(end - path);
        if (length >= sizeof part) return damaged(path, "is too long for a name");
        memcpy(part, path, length);
        part[length] = '\0';
        while (*end == '/') end++;
        if (length == 0) continue;
        const htri_t exists = h5->Lexists(file->file, part, H5P_DEFAULT);
        H5L_info_t   link;
        if (exists < 0) return damaged(part, "cannot be looked up");
        if (exists == 0) return CORNU_OK;
        if (h5->Lget_info(file->file, part, &link, H5P_DEFAULT) < 0)
            return damaged(part, "is a damaged link");
        if (link.type != H5L_TYPE_HARD)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%.200s\" is a soft or external "
                               "link, expected an object of this file", part);
    }
    *has = true;
    return CORNU_OK;
}

/* Opens the object at the path; *object is -1 if there is none. */
static CornuStatus open_object(CornuHdf5 *file, const char *path, H5I_type_t kind, hid_t *object)
{
    bool has;
    *object = -1;
    CORNU__TRY(cornu__hdf5_has(file, path, &has));
    if (!has) return CORNU_OK;
    *object = h5->Oopen(file->file, *path ? path : "/", H5P_DEFAULT);
    if (*object < 0) return damaged(path, "cannot be opened");
    if (h5->Iget_type(*object) == kind) return CORNU_OK;
    h5->Oclose(*object);
    *object = -1;
    return damaged(path, kind == H5I_GROUP ? "is not a group" : "is not an array");
}

CornuStatus cornu__hdf5_count(CornuHdf5 *file, const char *group, int64_t *count)
{
    hid_t      object;
    H5G_info_t info;
    *count = 0;
    CORNU__TRY(open_object(file, group, H5I_GROUP, &object));
    if (object < 0) return CORNU_OK;
    const herr_t status = h5->Gget_info(object, &info);
    h5->Oclose(object);
    if (status < 0) return damaged(group, "is a damaged group");
    *count = (int64_t)info.nlinks;
    return CORNU_OK;
}

CornuStatus cornu__hdf5_member(CornuHdf5 *file, const char *group, int64_t i,
                               char name[CORNU_HDF5_NAME])
{
    hid_t object;
    CORNU__TRY(open_object(file, group, H5I_GROUP, &object));
    if (object < 0) return damaged(group, "is not there");
    const ssize_t length = h5->Lget_name_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC,
                                                (hsize_t)i, name, CORNU_HDF5_NAME, H5P_DEFAULT);
    h5->Oclose(object);
    if (length < 0) return damaged(group, "is a damaged group");
    if (length < CORNU_HDF5_NAME) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%.60s\" has a member with a name of %lld bytes, "
                       "expected at most %d", group, (long long)length, CORNU_HDF5_NAME - 1);
}

/* ---- Arrays ---- */

/* The dtype that holds the numbers of a stored type: h5py keeps bf16 as bytes without meaning. */
static bool find_dtype(hid_t type, CornuDtype *dtype)
{
    const H5T_class_t kind = h5->Tget_class(type);
    const size_t      size = h5->Tget_size(type);
    const bool        unsign = kind == H5T_INTEGER && h5->Tget_sign(type) == H5T_SGN_NONE;
    if (kind == H5T_OPAQUE && size == 2) *dtype = CORNU_BF16;
    else if (kind == H5T_FLOAT) *dtype = size > 4 ? CORNU_F64 : CORNU_F32;
    else if (kind == H5T_INTEGER && unsign && size == 1) *dtype = CORNU_U8;
    else if (kind == H5T_INTEGER && size + unsign <= 4) *dtype = CORNU_I32;
    else if (kind == H5T_INTEGER) *dtype = CORNU_I64;
    else return false;
    return true;
}

static CornuStatus find_shape(const char *path, hid_t space, CornuShape *shape)
{
    hsize_t   extents[H5S_MAX_RANK];
    const int rank = h5->Sget_simple_extent_ndims(space);
    if (rank > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%.200s\" has %d axes, expected at most %d",
                           path, rank, CORNU_MAX_RANK);
    if (rank < 0 || h5->Sget_simple_extent_dims(space, extents, NULL) < 0 ||
        h5->Sget_simple_extent_type(space) == H5S_NULL)
        return damaged(path, "has a damaged shape");
    *shape = (CornuShape){ .rank = rank };
    for (int i = 0; i < rank; i++) {
        if (extents[i] > INT64_MAX) return damaged(path, "has a damaged shape");
        shape->extent[i] = (int64_t)extents[i];
    }
    return CORNU_OK;
}

/* Refuses arrays whose bytes lie outside the file, or are fewer than their shape needs. */
static CornuStatus check_storage(const CornuHdf5 *file, const char *path, hid_t array,
                                 CornuType type)
{
    const hid_t      list = h5->Dget_create_plist(array);
    const H5D_layout_t layout = h5->Pget_layout(list);
    const int        external = h5->Pget_external_count(list);
    const int        filters = h5->Pget_nfilters(list);
    bool             known = layout >= 0 && external >= 0 && filters >= 0;
    for (int i = 0; i < filters; i++) {
        unsigned flags, config;
        size_t   values = 0;
        const H5Z_filter_t filter = h5->Pget_filter2(list, (unsigned)i, &flags, &values, NULL, 0,
                                                     NULL, &config);
        known &= filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE ||
                 filter == H5Z_FILTER_FLETCHER32;
    }
    h5->Pclose(list);
    if (external > 0 || layout == H5D_VIRTUAL)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%.200s\" keeps its data in another file, "
                           "expected it in this one", path);
    if (!known)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%.200s\" is compressed by an unknown "
                           "filter, expected deflate, shuffle, fletcher32 or none", path);
    const uint64_t declared = cornu_type_bytes(type), stored = h5->Dget_storage_size(array);
    if (stored > file->size)
        return cornu__fail(CORNU_ERR_FORMAT, "\"%.200s\" declares %llu stored bytes, the file has "
                           "%zu", path, (unsigned long long)stored, file->size);
    if (declared > MUCH && declared / MAX_DEFLATE_RATIO > stored)
        return cornu__fail(CORNU_ERR_FORMAT, "\"%.200s\" declares %llu bytes, but only %llu are "
                           "stored", path, (unsigned long long)declared,
                           (unsigned long long)stored);
    return CORNU_OK;
}

static CornuStatus type_of(const CornuHdf5 *file, const char *path, hid_t array, CornuType *type)
{
    const hid_t stored = h5->Dget_type(array), space = h5->Dget_space(array);
    CornuStatus status = CORNU_OK;
    if (stored < 0 || space < 0)
        status = damaged(path, "is a damaged array");
    else if (!find_dtype(stored, &type->dtype))
        status = cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%.200s\" does not hold numbers", path);
    else
        status = find_shape(path, space, &type->shape);
    if (stored >= 0) h5->Tclose(stored);
    if (space >= 0) h5->Sclose(space);
    if (status == CORNU_OK) status = cornu__fail_prefix(cornu_type_check(*type), path);
    return status == CORNU_OK ? check_storage(file, path, array, *type) : status;
}

static CornuStatus open_array(CornuHdf5 *file, const char *path, hid_t *array, CornuType *type)
{
    CORNU__TRY(open_object(file, path, H5I_DATASET, array));
    if (*array < 0) return damaged(path, "is missing");
    CornuStatus status = type_of(file, path, *array, type);
    if (status != CORNU_OK) h5->Dclose(*array);
    return status;
}

CornuStatus cornu__hdf5_type(CornuHdf5 *file, const char *path, CornuType *type)
{
    hid_t array;
    CORNU__TRY(open_array(file, path, &array, type));
    h5->Dclose(array);
    return CORNU_OK;
}

static hid_t native(CornuDtype dtype)
{
    switch (dtype) {
    case CORNU_F32: return *h5->T_NATIVE_FLOAT_g;
    case CORNU_F64: return *h5->T_NATIVE_DOUBLE_g;
    case CORNU_I32: return *h5->T_NATIVE_INT32_g;
    case CORNU_I64: return *h5->T_NATIVE_INT64_g;
    case CORNU_U8:  return *h5->T_NATIVE_UINT8_g;
    default:        return -1;
    }
}

static CornuStatus check_native(const char *path, CornuDtype dtype)
{
    if (native(dtype) >= 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DTYPE, "\"%.200s\" is %s, expected f32, f64, i32, i64 or u8", path,
                       cornu_dtype_name(dtype));
}

/* Reads bf16 as f32. */
static CornuStatus read_bf16(const char *path, hid_t array, CornuArray to)
{
    const int64_t count = cornu_type_count(to.type);
    uint16_t     *bits = cornu__allocate((size_t)count, sizeof *bits);
    const hid_t   stored = h5->Dget_type(array);
    CornuStatus   status = !bits ? CORNU_ERR_MEMORY : CORNU_OK;
    if (!status && h5->Dread(array, stored, H5S_ALL, H5S_ALL, H5P_DEFAULT, bits) < 0)
        status = damaged(path, "cannot be read: some of its data is missing");
    for (int64_t i = 0; i < count && !status; i++)
        ((float *)to.data)[i] = cornu_bf16_to_float(bits[i]);
    if (stored >= 0) h5->Tclose(stored);
    cornu__release(bits);
    return status;
}

CornuStatus cornu__hdf5_read(CornuHdf5 *file, const char *path, CornuArray *to)
{
    hid_t       array;
    CornuType   type;
    CornuText   here, there;
    const hid_t wanted = native(to->type.dtype);
    CORNU__TRY(check_native(path, to->type.dtype));
    CORNU__TRY(open_array(file, path, &array, &type));
    CornuStatus status = CORNU_OK;
    if (!cornu_shape_equal(type.shape, to->type.shape))
        status = cornu__fail(CORNU_ERR_SHAPE, "\"%.200s\" is %s in the file, expected %s", path,
                             cornu_shape_print(&there, type.shape),
                             cornu_shape_print(&here, to->type.shape));
    else if (!to->data && !(to->data = cornu__allocate(cornu_type_bytes(to->type), 1)))
        status = CORNU_ERR_MEMORY;
    else if (type.dtype == CORNU_BF16 && to->type.dtype == CORNU_F32)
        status = read_bf16(path, array, *to);
    else if (h5->Dread(array, wanted, H5S_ALL, H5S_ALL, H5P_DEFAULT, to->data) < 0)
        status = damaged(path, "cannot be read: some of its data is missing");
    h5->Dclose(array);
    return status;
}

/* ---- Strings ---- */

static CornuStatus copy_text(const char *from, size_t most, char **to)
{
    size_t length = 0;
    while (length < most && from[length]) length++;
    if (!(*to = cornu__allocate(length + 1, 1))) return CORNU_ERR_MEMORY;
    memcpy(*to, from, length);
    return CORNU_OK;
}

/* Strings of fixed length, padded. */
static CornuStatus read_padded(const char *name, hid_t attribute, hid_t stored, char **to,
                               int64_t count)
{
    const size_t width = h5->Tget_size(stored);
    if (width == 0 || width > MAX_TEXT / (size_t)(count ? count : 1))
        return damaged(name, "is an attribute of an unlikely size");
    char       *bytes = cornu__allocate((size_t)count, width);
    CornuStatus status = !bytes                                    ? CORNU_ERR_MEMORY
                         : h5->Aread(attribute, stored, bytes) < 0 ? damaged(name, "is damaged")
                                                                   : CORNU_OK;
    for (int64_t i = 0; i < count && status == CORNU_OK; i++)
        status = copy_text(bytes + (size_t)i * width, width, &to[i]);
    cornu__release(bytes);
    return status;
}

/* Strings of variable length: the attribute holds references to them. */
static CornuStatus read_scattered(const CornuHdf5 *file, const char *name, hid_t object, char **to,
                                  int64_t count)
{
    H5O_info1_t info;
    size_t      all = 0;
    if (h5->Oget_info1(object, &info) < 0) return damaged(name, "belongs to a damaged group");
    for (int64_t i = 0; i < count; i++) {
        const char *text;
        size_t      length;
        if (!cornu__hdf5_find_text(file->bytes, file->size, info.addr, name, i, &text, &length))
            return damaged(name, "is a damaged attribute");
        /* Many references may point to the same string. */
        if ((all += length) > MAX_TEXT)
            return damaged(name, "is an attribute of an unlikely size");
        CORNU__TRY(copy_text(text, length, &to[i]));
    }
    return CORNU_OK;
}

static CornuStatus read_texts(const CornuHdf5 *file, const char *name, hid_t object,
                              hid_t attribute, hid_t stored, hid_t space, char ***texts,
                              int64_t *count)
{
    const hssize_t points = h5->Sget_simple_extent_npoints(space);
    if (points < 0 || points > MAX_TEXTS)
        return damaged(name, "is an attribute of an unlikely size");
    if (!(*texts = cornu__allocate((size_t)points, sizeof **texts))) return CORNU_ERR_MEMORY;
    *count = points;
    return h5->Tis_variable_str(stored) > 0 ? read_scattered(file, name, object, *texts, points)
                                            : read_padded(name, attribute, stored, *texts, points);
}

static CornuStatus open_texts(const CornuHdf5 *file, const char *name, hid_t object, char ***texts,
                              int64_t *count)
{
    const htri_t exists = h5->Aexists(object, name);
    if (exists == 0) return CORNU_OK;
    const hid_t attribute = exists > 0 ? h5->Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute < 0) return damaged(name, "is a damaged attribute");
    const hid_t stored = h5->Aget_type(attribute), space = h5->Aget_space(attribute);
    CornuStatus status = CORNU_OK;
    if (stored < 0 || space < 0)
        status = damaged(name, "is a damaged attribute");
    else if (h5->Tget_class(stored) == H5T_STRING)
        status = read_texts(file, name, object, attribute, stored, space, texts, count);
    else if (h5->Sget_simple_extent_npoints(space) == 0)
        *count = 0;                         /* an empty list, which h5py writes as numbers */
    else
        status = damaged(name, "is not an attribute of strings");
    if (stored >= 0) h5->Tclose(stored);
    if (space >= 0) h5->Sclose(space);
    h5->Aclose(attribute);
    return status;
}

CornuStatus cornu__hdf5_texts(CornuHdf5 *file, const char *group, const char *attribute,
                              char ***texts, int64_t *count)
{
    hid_t object;
    *texts = NULL;
    *count = -1;
    CORNU__TRY(open_object(file, group, H5I_GROUP, &object));
    if (object < 0) return CORNU_OK;
    CornuStatus status = open_texts(file, attribute, object, texts, count);
    h5->Oclose(object);
    if (status == CORNU_OK) return CORNU_OK;
    cornu__hdf5_free_texts(*texts, *count);
    *texts = NULL;
    *count = -1;
    return cornu__fail_prefix(status, *group ? group : "/");
}

void cornu__hdf5_free_texts(char **texts, int64_t count)
{
    for (int64_t i = 0; texts && i < count; i++) cornu__release(texts[i]);
    cornu__release(texts);
}

/* ---- Writing ---- */

static CornuStatus unwritten(const char *path)
{
    return cornu__fail(CORNU_ERR_MEMORY, "no memory for \"%.200s\" in an HDF5 file", path);
}

CornuStatus cornu__hdf5_write_group(CornuHdf5 *file, const char *path)
{
    const hid_t links = h5->Pcreate(*h5->P_CLS_LINK_CREATE_ID_g);
    h5->Pset_create_intermediate_group(links, 1);
    const hid_t group = h5->Gcreate2(file->file, path, links, H5P_DEFAULT, H5P_DEFAULT);
    h5->Pclose(links);
    if (group < 0) return unwritten(path);
    h5->Gclose(group);
    return CORNU_OK;
}

/* An array of elements of type `memory`, stored as `type`. */
static CornuStatus write_as(CornuHdf5 *file, const char *path, CornuArray array, hid_t memory,
                            hid_t type)
{
    hsize_t extents[CORNU_MAX_RANK];
    for (int i = 0; i < array.type.shape.rank; i++)
        extents[i] = (hsize_t)array.type.shape.extent[i];
    const hid_t space = array.type.shape.rank
        ? h5->Screate_simple(array.type.shape.rank, extents, NULL) : h5->Screate(H5S_SCALAR);
    const hid_t links = h5->Pcreate(*h5->P_CLS_LINK_CREATE_ID_g);
    const hid_t settings = h5->Pcreate(*h5->P_CLS_DATASET_CREATE_ID_g);
    h5->Pset_create_intermediate_group(links, 1);
    h5->Pset_obj_track_times(settings, 0);
    const hid_t set = h5->Dcreate2(file->file, path, type, space, links, settings, H5P_DEFAULT);
    herr_t      written = -1;
    if (set >= 0) written = h5->Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data);
    if (set >= 0) h5->Dclose(set);
    h5->Pclose(settings);
    h5->Pclose(links);
    h5->Sclose(space);
    return written < 0 ? unwritten(path) : CORNU_OK;
}

CornuStatus cornu__hdf5_write(CornuHdf5 *file, const char *path, CornuArray array)
{
    CORNU__TRY(check_native(path, array.type.dtype));
    const hid_t type = native(array.type.dtype);
    return write_as(file, path, array, type, type);
}

static CornuStatus write_bf16(CornuHdf5 *file, const char *path, CornuArray array)
{
    const float *values = array.data;
    uint16_t    *bits = cornu__allocate((size_t)cornu_type_count(array.type), sizeof *bits);
    if (!bits) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < cornu_type_count(array.type); i++)
        bits[i] = cornu_bf16_from_float(values[i]);
    const hid_t type = h5->Tcreate(H5T_OPAQUE, sizeof *bits);
    array.data = bits;
    CornuStatus status = write_as(file, path, array, type, type);
    h5->Tclose(type);
    cornu__release(bits);
    return status ? status : cornu__hdf5_write_text(file, path, "dtype", "bfloat16");
}

/* IEEE 754 binary16: a sign, 5 bits of exponent, 10 of mantissa. */
static hid_t half_type(void)
{
    const hid_t type = h5->Tcopy(*h5->T_IEEE_F32LE_g);
    h5->Tset_fields(type, 15, 10, 5, 0, 10);
    h5->Tset_size(type, 2);
    h5->Tset_ebias(type, 15);
    return type;
}

CornuStatus cornu__hdf5_write_narrow(CornuHdf5 *file, const char *path, CornuArray array,
                                     CornuHdf5Narrow narrow)
{
    const hid_t memory = *h5->T_NATIVE_FLOAT_g;
    if (array.type.dtype != CORNU_F32) return cornu__hdf5_write(file, path, array);
    if (narrow == CORNU_HDF5_BF16) return write_bf16(file, path, array);
    if (narrow == CORNU_HDF5_I8) return write_as(file, path, array, memory, *h5->T_STD_I8LE_g);
    const hid_t type = half_type();
    const CornuStatus status = write_as(file, path, array, memory, type);
    h5->Tclose(type);
    return status;
}

/* Closes the space. */
static CornuStatus write_attribute(CornuHdf5 *file, const char *group, const char *attribute,
                                   hid_t space, const char *const *texts)
{
    const hid_t type = h5->Tcopy(*h5->T_C_S1_g);
    h5->Tset_size(type, H5T_VARIABLE);
    h5->Tset_cset(type, H5T_CSET_UTF8);
    const hid_t to = h5->Acreate_by_name(file->file, group, attribute, type, space, H5P_DEFAULT,
                                         H5P_DEFAULT, H5P_DEFAULT);
    const herr_t written = to < 0 ? -1 : h5->Awrite(to, type, texts);
    if (to >= 0) h5->Aclose(to);
    h5->Sclose(space);
    h5->Tclose(type);
    return written < 0 ? unwritten(group) : CORNU_OK;
}

CornuStatus cornu__hdf5_write_text(CornuHdf5 *file, const char *group, const char *attribute,
                                   const char *text)
{
    return write_attribute(file, group, attribute, h5->Screate(H5S_SCALAR), &text);
}

CornuStatus cornu__hdf5_write_texts(CornuHdf5 *file, const char *group, const char *attribute,
                                    const char *const *texts, int64_t count)
{
    const hsize_t extent = (hsize_t)count;
    if (count > CORNU_HDF5_MOST_TEXTS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%s\" has %lld %s, expected at most %d",
                           group, (long long)count, attribute, CORNU_HDF5_MOST_TEXTS);
    return write_attribute(file, group, attribute, h5->Screate_simple(1, &extent, NULL), texts);
}

CornuStatus cornu__hdf5_bytes(CornuHdf5 *file, unsigned char **bytes, size_t *size)
{
    *bytes = NULL;
    h5->Fflush(file->file, H5F_SCOPE_LOCAL);
    const ssize_t length = h5->Fget_file_image(file->file, NULL, 0);
    if (length < 0) return unwritten("");
    if (!(*bytes = cornu__allocate((size_t)length, 1))) return CORNU_ERR_MEMORY;
    *size = (size_t)length;
    if (h5->Fget_file_image(file->file, *bytes, *size) == length) return CORNU_OK;
    cornu__release(*bytes);
    return unwritten("");
}

#else   /* without libhdf5 no file is ever opened */

static CornuHdf5 *missing(void)
{
    cornu__hdf5_enter();
    return cornu__null();
}

static CornuStatus never(void) { return CORNU_ERR_UNSUPPORTED; }

CornuHdf5 *cornu__hdf5_open(const void *bytes, size_t size)
{
    (void)bytes, (void)size;
    return missing();
}

CornuHdf5 *cornu__hdf5_create(void) { return missing(); }

void cornu__hdf5_close(CornuHdf5 *file) { (void)file; }

CornuStatus cornu__hdf5_has(CornuHdf5 *file, const char *path, bool *has)
{
    (void)file, (void)path, (void)has;
    return never();
}

CornuStatus cornu__hdf5_count(CornuHdf5 *file, const char *group, int64_t *count)
{
    (void)file, (void)group, (void)count;
    return never();
}

CornuStatus cornu__hdf5_member(CornuHdf5 *file, const char *group, int64_t i,
                               char name[CORNU_HDF5_NAME])
{
    (void)file, (void)group, (void)i, (void)name;
    return never();
}

CornuStatus cornu__hdf5_type(CornuHdf5 *file, const char *path, CornuType *type)
{
    (void)file, (void)path, (void)type;
    return never();
}

CornuStatus cornu__hdf5_read(CornuHdf5 *file, const char *path, CornuArray *to)
{
    (void)file, (void)path, (void)to;
    return never();
}

CornuStatus cornu__hdf5_texts(CornuHdf5 *file, const char *group, const char *attribute,
                              char ***texts, int64_t *count)
{
    (void)file, (void)group, (void)attribute, (void)texts, (void)count;
    return never();
}

void cornu__hdf5_free_texts(char **texts, int64_t count) { (void)texts, (void)count; }

CornuStatus cornu__hdf5_write_group(CornuHdf5 *file, const char *path)
{
    (void)file, (void)path;
    return never();
}

CornuStatus cornu__hdf5_write(CornuHdf5 *file, const char *path, CornuArray array)
{
    (void)file, (void)path, (void)array;
    return never();
}

CornuStatus cornu__hdf5_write_narrow(CornuHdf5 *file, const char *path, CornuArray array,
                                     CornuHdf5Narrow narrow)
{
    (void)file, (void)path, (void)array, (void)narrow;
    return never();
}

CornuStatus cornu__hdf5_write_text(CornuHdf5 *file, const char *group, const char *attribute,
                                   const char *text)
{
    (void)file, (void)group, (void)attribute, (void)text;
    return never();
}

CornuStatus cornu__hdf5_write_texts(CornuHdf5 *file, const char *group, const char *attribute,
                                    const char *const *texts, int64_t count)
{
    (void)file, (void)group, (void)attribute, (void)texts, (void)count;
    return never();
}

CornuStatus cornu__hdf5_bytes(CornuHdf5 *file, unsigned char **bytes, size_t *size)
{
    (void)file, (void)bytes, (void)size;
    return never();
}

#endif
