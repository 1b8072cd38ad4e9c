/* A layout map as a device has it. */
#ifndef CORNU_DEVICE_MESH_LAYOUT_MAP_INTERNAL_H
#define CORNU_DEVICE_MESH_LAYOUT_MAP_INTERNAL_H

#include "layout_map.h"
#include "partition.h"

typedef struct CornuLayoutMap CornuLayoutMap;

/* A copy, checked against the mesh; the caller frees it. NULL, pending, for a pattern that is not
 * an expression, and for axes that the mesh lacks or that cut twice (CORNU_ERR_ARGUMENT). */
CornuLayoutMap *cornu__layout_map(const CornuMesh *mesh, const CornuLayoutRow *rows);
void            cornu__layout_map_free(CornuLayoutMap *map);

/* The layout of a variable; whole if no row is for it, or there is no map. CORNU_ERR_ARGUMENT if
 * several expressions are found in the path, CORNU_ERR_SHAPE if the variable has fewer axes than
 * its row or one does not divide. */
CornuStatus cornu__layout_find(CornuLayoutMap *map, const CornuMesh *mesh, const char *path,
                               CornuType type, CornuLayout *layout);

/* Of a layer's output (B, …), whose path ends in "/output". The rows of a batch are dealt over
 * `data` already: in the layout it is not among the axes that cut axis 0. CORNU_ERR_ARGUMENT if it
 * cuts another axis. */
CornuStatus cornu__layout_find_output(CornuLayoutMap *map, const CornuMesh *mesh, unsigned data,
                                      const char *path, CornuType type, CornuLayout *layout);
/* The row for the output of this path, if there is one, is of use. */
CornuStatus cornu__layout_note(CornuLayoutMap *map, const char *path);

/* Likewise on this device. */
CornuStatus cornu__device_output_layout(const struct CornuDevice *device, const char *path,
                                        CornuType type, CornuLayout *layout);
CornuStatus cornu__device_note_output(const struct CornuDevice *device, const char *path);

/* Of a variable on this device; by_rows: it is updated by rows, so that
 * cornu_device_shard_fully does not count. blocks: its last axis is so many side by side, each of
 * which is cut if they divide. */
CornuStatus cornu__device_layout(const struct CornuDevice *device, const char *path, CornuType type,
                                 bool by_rows, int blocks, CornuLayout *layout);

/* cornu__layout_unused of the device's map. */
const char *cornu__device_unused_layout(const struct CornuDevice *device, bool *of_output);

/* The first pattern that has been found in no path so far, and whether it is one of outputs; NULL
 * if all have, or need not. */
const char *cornu__layout_unused(const CornuLayoutMap *map, bool *of_output);

#endif
