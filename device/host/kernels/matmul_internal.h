/* What the files of cornu__host_matmul share. */
#ifndef CORNU_DEVICE_HOST_MATMUL_INTERNAL_H
#define CORNU_DEVICE_HOST_MATMUL_INTERNAL_H

#include "../../integer_internal.h"
#include "matmul.h"
#include "precision.h"

enum {
    CORNU_MATMUL_SOME_ROWS = 16,     /* of a transposed a, packed at once; even */
    CORNU_MATMUL_BYTES = 512 << 10   /* of a in a block, more than one tile at most; of the
                                        second-level cache                      */
};

typedef struct {
    const CornuKernelCall *call;
    CornuMultiplication    how;
    const CornuProducts   *products;
    CornuMatmulExtents     e;
    int64_t  b_count, b_matrices;
    int      summed;                 /* shards whose results are added up; 0: none        */
    int      threads;                /* that take the blocks; 0: any number               */
    bool     transposed;             /* a, which blocks pack by columns                  */
    bool     turned;                 /* a, which becomes rows at first                   */
    bool     square;                 /* blocks, about: with tile registers               */
    bool     by_rows;                /* of a transposed a blocks pack rows for tiles     */
    bool     copied;                 /* rows of a, before tiles read them                */
    bool     packs;                  /* each panel of b where it is used, no earlier step */
    bool     in_turns;               /* passes, in registers for tiles                   */
    bool     short_chunks;           /* of a transposed a, f32: blocks as in cut_short          */
    int64_t  padded, depth;          /* N and K, rounded up to whole registers and pairs */
    int64_t  tiles;                  /* high is a block of rows, at most                 */
    int64_t  tile_rows;              /* of a that is not transposed                      */
    int64_t  row_blocks, column_blocks, panels;
    const void *a;
    const char *packed;              /* b */
    float   *bias;                   /* and after it what finish has of columns */
    CornuFinish finish;
    char    *panel;                  /* of b, if packed here, per thread       */
    char    *x;                      /* rows of a block, all parts, per thread */
    int64_t  made_row;               /* elements between rows of a as it is made before all blocks,
                                        stretch by stretch; 0: it is read where it is */
    char    *made;
    int64_t  stretch;                /* of K that tiles sum at once; sums continue in memory */
    int64_t  panel_bytes, x_stride, x_part, x_bytes;
    /* Of a that is transposed, whose x are panels of `chunk` rows along K, in memory of x_rows: per
     * thread a few of a's rows in parts, and unless the result takes them the sums of a block, of
     * the last pass and of those before, whose terms are small; or of a panel's columns of all
     * shards, and what they add up to. If K is split, the sums of all blocks, split by split. */
    int64_t  splits, split_rows, chunk, x_rows;
    char    *rows;
    float   *sums;
    int64_t  row_bytes, sums_count;
} CornuMatmul;

static inline int64_t cornu__block_rows(const CornuMatmul *p)
{
    return p->tiles * p->products->tile_rows;
}

/* Columns that a panel has. */
static inline int64_t cornu__panel_columns(const CornuMatmul *p) { return 2 * p->products->lanes; }

/* What a tile of so many rows, from row m of a block on, requests besides lines: the sums of the
 * next tile, or after the last one of the first tile beside the next panel. */
static inline void cornu__request_sums(CornuAhead *ahead, const void *y, int64_t m, int64_t rows,
                                       bool last)
{
    CornuAheadRows *sums = &ahead->sums;
    sums->at = (const char *)y + (last ? sums->bytes - m * sums->stride : rows * sums->stride);
    sums->rows = rows;
}

/* Tiles of AVX-512 and NEON: of a transposed a they read a panel slowly enough for the second-level
 * cache, if it is requested in time. */
static inline bool cornu__has_tall_tiles(const CornuMatmul *p)
{
    return p->products->outer_rows >= 14;
}

/* Sums that continue in memory are the result itself: f32, in whole registers; but not of blocks
 * about square, whose rows, a row of the result apart, would share few sets of a cache. */
static inline bool cornu__matmul_sums_in_place(const CornuMatmul *p, const CornuType *out_type)
{
    return out_type->dtype == CORNU_F32 && p->padded == p->e.n && p->how.passes == 1 &&
           p->splits == 1 && !p->square;
}

static inline bool cornu__is_stretched(const CornuMatmul *p) { return p->stretch < p->e.k; }

/* Stretches of K. */
static inline int64_t cornu__stretches(const CornuMatmul *p)
{
    return ceil_divide(p->e.k, larger(1, p->stretch));
}

static inline int64_t cornu__panel_width(const CornuMatmul *p, int64_t first)
{
    return smaller(cornu__panel_columns(p), p->padded - first);
}

/* Where the panel at column `first` of one matrix b is: `depth` rows for each part. */
static inline int64_t cornu__panel_offset(const CornuMatmul *p, int64_t matrix, int64_t first)
{
    return (matrix * p->padded + first) * p->depth * p->how.parts * (int64_t)p->products->size;
}

/* The part of one block. */
typedef struct {
    int64_t matrix, m, m_end, first, end;   /* rows and columns */
} CornuBlock;

static inline CornuBlock cornu__block(const CornuMatmul *p, int64_t block)
{
    const int64_t columns = block % p->column_blocks, rest = block / p->column_blocks;
    const int64_t rows = rest % p->row_blocks, matrix = rest / p->row_blocks;
    const int64_t begin = columns * p->panels / p->column_blocks;
    const int64_t end = (columns + 1) * p->panels / p->column_blocks;
    return (CornuBlock){ matrix, rows * p->e.m / p->row_blocks,
                         (rows + 1) * p->e.m / p->row_blocks, begin * cornu__panel_columns(p),
                         smaller(end * cornu__panel_columns(p), p->padded) };
}

/* The number of an element of the result. */
static inline int64_t cornu__result_number(const CornuMatmul *p, int64_t matrix, int64_t m,
                                           int64_t n)
{
    return (matrix * p->e.m + m) * p->e.n + n;
}

static inline char *cornu__result_at(const CornuMatmul *p, int64_t matrix, int64_t m, int64_t n)
{
    const int64_t size = p->call->out_type->dtype == CORNU_BF16 ? 2 : 4;
    return (char *)p->call->out[0] + cornu__result_number(p, matrix, m, n) * size;
}

/* ---- matmul_blocks.c ---- */

/* Cuts the call into blocks, of p->summed shards' results if that is set. */
void cornu__matmul_find_blocks(CornuMatmul *p, const CornuOpCall *op, const CornuType *out_type,
                               CornuMultiplier multiplier);

/* Sizes, and the parts of the scratch memory. */
void cornu__matmul_lay_out(CornuMatmul *p, const CornuQuery *q, CornuScratch *scratch);

/* Whether all rows are one block, which alone uses a panel, and the panels would not stay in the
 * cache from a step that packs them to this one; of a transposed a, few blocks, which have a panel
 * in the nearest cache. Shards share theirs. */
bool cornu__matmul_packs_itself(const CornuQuery *q);

/* Of b as the kernel reads it. */
size_t cornu__matmul_pack_bytes(const CornuQuery *q);

/* ---- matmul.c ---- */

/* What of the epilogue is left, which only f32 results have, to the rows of a block from y on. */
void cornu__matmul_finish(const CornuMatmul *p, const CornuBlock *b,
                          const CornuEpilogue *rest, float *y, int64_t stride);

/* The epilogue's gate, if there is one, to a block of the result. */
void cornu__matmul_gate(const CornuMatmul *p, const CornuBlock *b);

/* Packs b as the kernel reads it. */
void cornu__matmul_pack(const CornuKernelCall *call);

/* ---- matmul_transposed.c ---- */

/* The product, if a is transposed. */
void cornu__matmul_transposed(CornuMatmul *p);

#endif
