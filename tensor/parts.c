/*
 * Host arrays to and from buffers of which each shard has a part. Whoever feeds and reads knows the
 * shards that share a batch; a mesh has others beside them, which have the same or other slices.
 */
#include <string.h>

#include "../device/device_internal.h"
#include "../device/integer_internal.h"
#include "tensor_internal.h"

CornuType cornu__parts_type(const CornuDevice *device, CornuType part)
{
    return cornu__sharded(part, device->shards);
}

int cornu__part_of_shard(const CornuDevice *device, int shard)
{
    return device->mesh.axes ? cornu_mesh_index(&device->mesh, device->data, shard) : shard;
}

/* ---- Ranges of what the shards of a batch have ---- */

/* The shard that has the part of number r of those that share a batch: the first one. */
static int first_shard(const CornuDevice *device, int r)
{
    int shard = 0;
    while (cornu__part_of_shard(device, shard) != r) shard++;
    return shard;
}

/* Copies elements of the array, which begins at element `first` of all parts, that are of part r
 * and belong to this shard. */
static CornuStatus copy_range(CornuBuffer *buffer, int shard, int r, int64_t first,
                              CornuArray array, bool write)
{
    const int64_t each = cornu_type_count(buffer->type) / buffer->device->shards;
    const int64_t low = larger(first, r * each);
    const int64_t high = smaller(first + cornu_type_count(array.type), (r + 1) * each);
    if (low >= high) return CORNU_OK;
    const size_t     size = cornu_dtype_size(array.type.dtype);
    const CornuArray part = cornu_array((char *)array.data + (size_t)(low - first) * size,
                                        array.type.dtype, high - low);
    const int64_t    at = shard * each + low - r * each;
    return write ? cornu_buffer_write_part(buffer, at, part)
                 : cornu_buffer_read_part(buffer, at, part);
}

CornuStatus cornu__parts_write(CornuBuffer *buffer, int64_t first, CornuArray from)
{
    const CornuDevice *device = buffer->device;
    if (device->mesh.axes == 0) return cornu_buffer_write_part(buffer, first, from);
    for (int s = 0; s < device->shards; s++)
        CORNU__TRY(copy_range(buffer, s, cornu__part_of_shard(device, s), first, from, true));
    return CORNU_OK;
}

CornuStatus cornu__parts_read(const CornuBuffer *buffer, int64_t first, CornuArray to)
{
    const CornuDevice *device = buffer->device;
    if (device->mesh.axes == 0) return cornu_buffer_read_part(buffer, first, to);
    for (int r = 0; r < cornu_device_shards(device); r++)
        CORNU__TRY(copy_range((CornuBuffer *)buffer, first_shard(device, r), r, first, to, false));
    return CORNU_OK;
}

/* ---- Slices ---- */

/* The number in the whole of element k of the slice that a shard has: of an axis in blocks the
 * slice has a piece of each. */
static int64_t place_in(const CornuMesh *mesh, CornuLayout layout, CornuShape whole,
                        CornuShape slice, int shard, int64_t k)
{
    int64_t at = 0, stride = 1;
    for (int i = whole.rank - 1; i >= 0; i--) {
        const int64_t n = slice.extent[i], blocks = cornu__layout_blocks(layout, i);
        const int64_t piece = n / blocks, block = k % n / piece;
        const int64_t own = piece * cornu_mesh_index(mesh, layout.cut[i], shard);
        at += (block * (whole.extent[i] / blocks) + own + k % piece) * stride;
        stride *= whole.extent[i];
        k /= n;
    }
    return at;
}

/* Copies between a slice and its places in the whole, in runs of the last axis' blocks. */
static void copy_slice(const CornuMesh *mesh, CornuLayout layout, CornuArray whole,
                       CornuArray slice, int shard, bool write)
{
    const size_t  size = cornu_dtype_size(whole.type.dtype);
    const int     rank = slice.type.shape.rank;
    const int64_t run = rank ? slice.type.shape.extent[rank - 1] /
                               cornu__layout_blocks(layout, rank - 1) : 1;
    for (int64_t k = 0; k < cornu_type_count(slice.type); k += run) {
        char *own = (char *)slice.data + (size_t)k * size;
        char *of_whole = (char *)whole.data + size * (size_t)place_in(
            mesh, layout, whole.type.shape, slice.type.shape, shard, k);
        memcpy(write ? own : of_whole, write ? of_whole : own, (size_t)run * size);
    }
}

static CornuStatus copy_slices(CornuBuffer *buffer, CornuLayout layout, CornuArray whole,
                               bool write)
{
    const CornuDevice *device = buffer->device;
    CornuType          type;
    CORNU__TRY(cornu__layout_slice(&device->mesh, layout, whole.type, &type));
    const int64_t each = cornu_type_count(type);
    CornuArray    slice = cornu_array_from(cornu__allocate(cornu_type_bytes(type) + 1, 1), type);
    CornuStatus   status = slice.data ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int s = 0; s < device->shards && !status; s++) {
        /* Of shards with the same slice the first is read. */
        const unsigned others = ~cornu__layout_axes(layout);
        if (!write && cornu_mesh_index(&device->mesh, others, s)) continue;
        if (write) copy_slice(&device->mesh, layout, whole, slice, s, true);
        status = write ? cornu_buffer_write_part(buffer, s * each, slice)
                       : cornu_buffer_read_part(buffer, s * each, slice);
        if (!write && !status) copy_slice(&device->mesh, layout, whole, slice, s, false);
    }
    cornu__release(slice.data);
    return status;
}

CornuStatus cornu__slices_write(CornuBuffer *buffer, CornuLayout layout, CornuArray from)
{
    return copy_slices(buffer, layout, from, true);
}

CornuStatus cornu__slices_read(const CornuBuffer *buffer, CornuLayout layout, CornuArray to)
{
    return copy_slices((CornuBuffer *)buffer, layout, to, false);
}
