/* idx files that are compressed here, so that inputs change the contents: byte 0 is the size of the
 * first of two members, byte 1 how many bytes are missing at the end, or if negative are added. */
#include "fuzz.h"

#include "../../datasets/mnist/idx.h"

#include <zlib.h>

enum { MOST = 1 << 16 };

static uint8_t packed[2 * MOST];

/* Appends a member at `at`; returns where it ends. */
static size_t pack(size_t at, const uint8_t *data, size_t size)
{
    enum { GZIP = 16 + MAX_WBITS, LITTLE_MEMORY = 1 };
    z_stream stream = { .next_in = (Bytef *)data, .avail_in = (uInt)size,
                        .next_out = packed + at, .avail_out = (uInt)(sizeof packed - at) };
    if (deflateInit2(&stream, 1, Z_DEFLATED, GZIP, LITTLE_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    deflate(&stream, Z_FINISH);
    deflateEnd(&stream);
    return at + stream.total_out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > MOST) return 0;
    const size_t split = data[0] < size - 2 ? data[0] : size - 2;
    const int    cut = data[1] < 128 ? data[1] : data[1] - 256;
    size_t       all = pack(0, data + 2, split);
    if (split < size - 2) all = pack(all, data + 2 + split, size - 2 - split);
    if (cut < 0) memset(packed + all, 0x1f, (size_t)-cut);
    all = cut < 0 || (size_t)cut < all ? all - (size_t)cut : 0;

    CornuArray array = { 0 };
    if (fuzz_done(cornu_idx_load(fuzz_file("idx.gz", packed, all), &array)))
        fuzz_read(array.data, cornu_type_bytes(array.type));
    free(array.data);
    return 0;
}
