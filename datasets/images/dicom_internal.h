/* The elements of a DICOM file that decide the numbers of an image. */
#ifndef CORNU_DATASETS_DICOM_INTERNAL_H
#define CORNU_DATASETS_DICOM_INTERNAL_H

#include "format_internal.h"

enum { CORNU_DICOM_TEXT = 72 };

/* Transfer syntaxes that are read. */
#define CORNU_DICOM_IMPLICIT "1.2.840.10008.1.2"
#define CORNU_DICOM_EXPLICIT "1.2.840.10008.1.2.1"
#define CORNU_DICOM_JPEG     "1.2.840.10008.1.2.4.50"

typedef struct {
    char   syntax[CORNU_DICOM_TEXT], photometric[CORNU_DICOM_TEXT];
    int    samples, planar, rows, columns;
    int    allocated, stored, high_bit, is_signed;   /* of a sample; high_bit -1: not given */
    double frames, window_centre, window_width, slope, intercept;   /* width 0: no window */
    size_t pixels;       /* where they begin */
    size_t length;       /* of the pixels; may be more than the file has */
    bool   in_items;     /* compressed, in fragments */
} CornuDicom;

bool cornu__is_dicom(const uint8_t *bytes, size_t size);

/* Reads the elements up to the pixels. */
CornuStatus cornu__dicom_read(const CornuImageBytes *file, CornuDicom *dicom);

/* Copies the fragments of the first frame, *size bytes, less than the file has. */
CornuStatus cornu__dicom_fragments(const CornuImageBytes *file, const CornuDicom *dicom,
                                   uint8_t *to, size_t *size);

#endif
