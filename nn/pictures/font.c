#include "font_internal.h"

#include <stddef.h>

/* From ' ' to '~'. Capitals are 12 units high and about 8 wide, small letters 8 high. */
static const char *const strokes[] = {
    /*   */ "",
    /* ! */ "0a0i 0l0m",
    /* " */ "0a0d 3a3d",
    /* # */ "3a1m 7a5m 0e8e 0i8i",
    /* $ */ "8d6b2b0d0e2g6g8i8j6l2l0j 4a4m",
    /* % */ "8a1m 1a0b0d1e2e3d3b2a1a 7i6j6l7m8m9l9j8i7i",
    /* & */ "8m1d1b2a4a5b5d0i0k2m5m8h",
    /* ' */ "0a0d",
    /* ( */ "3a1c0f0i1l3o",
    /* ) */ "0a2c3f3i2l0o",
    /* * */ "3b3h 0c6g 6c0g",
    /* + */ "4d4l 0h8h",
    /* , */ "1l1m0o",
    /* - */ "0h5h",
    /* . */ "0l0m",
    /* / */ "0n6a",
    /* 0 */ "2a0c0k2m5m7k7c5a2a",
    /* 1 */ "1d4a4m 1m7m",
    /* 2 */ "0c2a5a7c7e0m7m",
    /* 3 */ "0a7a3f5f7h7k5m2m0k",
    /* 4 */ "6m6a0i8i",
    /* 5 */ "7a1a0g2e5e7g7k5m2m0k",
    /* 6 */ "6a3a1d0g0k2m5m7k7h5f2f0h",
    /* 7 */ "0a7a3m",
    /* 8 */ "2a0c0e2g5g7e7c5a2a 2g0i0k2m5m7k7i5g",
    /* 9 */ "1m4m6j7g7c5a2a0c0f2h5h7f",
    /* : */ "0e0f 0l0m",
    /* ; */ "1e1f 1l1m0o",
    /* < */ "7d0h7l",
    /* = */ "0f8f 0j8j",
    /* > */ "0d7h0l",
    /* ? */ "0c2a5a7c7e4g3i 3l3m",
    /* @ */ "6j6f4e3f2h3j5j6h 6i8j9h9d7a3a0d0j2m6m",
    /* A */ "0m4a8m 1i7i",
    /* B */ "0g5g7e7c5a0a0m6m8k8i6g5g",
    /* C */ "8c6a3a1b0d0j1l3m6m8k",
    /* D */ "0a0m5m7l8j8d7b5a0a",
    /* E */ "7a0a0m7m 0g6g",
    /* F */ "7a0a0m 0g6g",
    /* G */ "8c6a3a1b0d0j1l3m6m8k8h5h",
    /* H */ "0a0m 8a8m 0g8g",
    /* I */ "0a0m",
    /* J */ "6a6k4m2m0k",
    /* K */ "0a0m 8a0i 3f8m",
    /* L */ "0a0m7m",
    /* M */ "0m0a5i:a:m",
    /* N */ "0m0a8m8a",
    /* O */ "3a1b0d0j1l3m6m8l9j9d8b6a3a",
    /* P */ "0m0a6a8c8e6g0g",
    /* Q */ "3a1b0d0j1l3m6m8l9j9d8b6a3a 6j9n",
    /* R */ "0m0a6a8c8e6g0g 5g8m",
    /* S */ "8c6a2a0c0e2g6g8i8k6m2m0k",
    /* T */ "0a8a 4a4m",
    /* U */ "0a0j1l3m5m7l8j8a",
    /* V */ "0a4m8a",
    /* W */ "0a2m5c8m:a",
    /* X */ "0a8m 8a0m",
    /* Y */ "0a4g8a 4g4m",
    /* Z */ "0a8a0m8m",
    /* [ */ "3a0a0o3o",
    /* \ */ "0a6n",
    /* ] */ "0a3a3o0o",
    /* ^ */ "0e3a6e",
    /* _ */ "0n8n",
    /* ` */ "0a2c",
    /* a */ "7e7m 7g5e2e0g0k2m5m7k",
    /* b */ "0a0m 0g2e5e7g7k5m2m0k",
    /* c */ "6f5e2e0g0k2m5m6l",
    /* d */ "7a7m 7g5e2e0g0k2m5m7k",
    /* e */ "0i7i7g5e2e0g0k2m5m7l",
    /* f */ "5a4a2c2m 0e5e",
    /* g */ "7e7o5q2q0p 7g5e2e0g0k2m5m7k",
    /* h */ "0a0m 0g2e4e6g6m",
    /* i */ "0e0m 0a0b",
    /* j */ "2e2o1q0q 2a2b",
    /* k */ "0a0m 6e0j 2h6m",
    /* l */ "0a0k2m",
    /* m */ "0e0m 0g2e3e5g5m 5g7e8e:g:m",
    /* n */ "0e0m 0g2e4e6g6m",
    /* o */ "2e0g0k2m5m7k7g5e2e",
    /* p */ "0e0q 0g2e5e7g7k5m2m0k",
    /* q */ "7e7q 7g5e2e0g0k2m5m7k",
    /* r */ "0e0m 0g2e4e",
    /* s */ "6f5e1e0f0g1h5i6j6l5m1m0l",
    /* t */ "2a2k4m5m 0e5e",
    /* u */ "0e0k2m4m6k 6e6m",
    /* v */ "0e3m6e",
    /* w */ "0e2m5f8m:e",
    /* x */ "0e6m 6e0m",
    /* y */ "0e3m 6e3m2p0q",
    /* z */ "0e6e0m6m",
    /* { */ "4a2b2f0h2j2n4o",
    /* | */ "0a0o",
    /* } */ "0a2b2f4h2j2n0o",
    /* ~ */ "0i2g5i7g",
};

const char *cornu__font_strokes(char character)
{
    const size_t index = (unsigned char)character - (size_t)' ';
    return strokes[index < sizeof strokes / sizeof *strokes ? index : '?' - ' '];
}

int cornu__font_advance(char character)
{
    enum { GAP = 3, BLANK = 5, DIGIT = 7 };
    const char *points = cornu__font_strokes(character);
    int         right = 0;
    if (!*points) return BLANK;
    for (; points[0] && points[1]; points += points[2] == ' ' ? 3 : 2)
        if (points[0] - '0' > right) right = points[0] - '0';
    /* Digits are of one width, so that numbers align. */
    return GAP + (character >= '0' && character <= '9' ? DIGIT : right);
}
