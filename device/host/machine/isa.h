/*
 * The instruction sets that kernels are compiled for, by the processor this is compiled for: each
 * includes those before it. isa/isa.mk has their flags, cpu.c detects them; a file in isa/ is
 * compiled for all sets that its table is declared for.
 *
 *     CORNU__F32_ISAS(X, type, name)    X(type, name, SET, set) for each set with kernels of f32
 *     CORNU__BF16_ISAS(X, type, name)   with products of bf16 and what goes with them
 *     CORNU__TILE_ISAS(X, type, name)   with products of bf16 on tile registers
 *     CORNU__VNNI_ISAS(X, type, name)   with products of int8; not in the order of the others, as
 *                                       some processors with avx512 have them: CornuCpu.vnni
 *
 *     CORNU__F32_ISAS(CORNU__DECLARE, const CornuVectors, cornu__vectors)
 *     const CornuVectors *const vectors[] = { CORNU__F32_ISAS(CORNU__ADDRESS, , cornu__vectors) };
 */
#ifndef CORNU_DEVICE_HOST_ISA_H
#define CORNU_DEVICE_HOST_ISA_H

#if defined(__x86_64__)
/* avx2: x86-64-v3, that is AVX2, FMA, BMI and others. avx512: x86-64-v4, that is AVX-512 F, BW, CD,
 * DQ, VL. */
#define CORNU__F32_ISAS(X, type, name)                              \
    X(type, name, PORTABLE, portable) X(type, name, AVX2, avx2)     \
    X(type, name, AVX512, avx512)
#define CORNU__BF16_ISAS(X, type, name) X(type, name, AVX512BF16, avx512bf16)
#define CORNU__TILE_ISAS(X, type, name) X(type, name, AMX, amx)
#define CORNU__VNNI_ISAS(X, type, name) X(type, name, AVX512VNNI, avx512vnni)
#elif defined(__aarch64__)
/* neon: 128 bits with FMA, on every arm64. neonbf16: FEAT_BF16, mandatory from Armv8.6 on. */
#define CORNU__F32_ISAS(X, type, name)                              \
    X(type, name, PORTABLE, portable) X(type, name, NEON, neon)
#define CORNU__BF16_ISAS(X, type, name) X(type, name, NEONBF16, neonbf16)
#define CORNU__TILE_ISAS(X, type, name)
#define CORNU__VNNI_ISAS(X, type, name)
#else
#define CORNU__F32_ISAS(X, type, name)  X(type, name, PORTABLE, portable)
#define CORNU__BF16_ISAS(X, type, name)
#define CORNU__TILE_ISAS(X, type, name)
#define CORNU__VNNI_ISAS(X, type, name)
#endif

/* All of them, in order. */
#define CORNU__ISAS(X, type, name)                                                    \
    CORNU__F32_ISAS(X, type, name) CORNU__BF16_ISAS(X, type, name) CORNU__TILE_ISAS(X, type, name)

/* X: declares a set's table, or gives the table's address, or the set's name or number. */
#define CORNU__DECLARE(type, name, id, isa)   extern type name##_##isa;
#define CORNU__ADDRESS(type, name, id, isa)   &name##_##isa,
#define CORNU__ISA_NAME(type, name, id, isa)  #isa,
#define CORNU__ISA_ID(type, name, id, isa)    CORNU_ISA_##id,
#define CORNU__ISA_COUNT(type, name, id, isa) + 1

/* Sets below CORNU_F32_ISA_COUNT multiply bf16 as f32, those from CORNU_TILE_ISA_FIRST on on tile
 * registers. neon and neonbf16 have run under qemu, on no processor. */
typedef enum {
    CORNU__ISAS(CORNU__ISA_ID, , )
    CORNU_ISA_COUNT,
    CORNU_F32_ISA_COUNT = 0 CORNU__F32_ISAS(CORNU__ISA_COUNT, , ),
    CORNU_TILE_ISA_FIRST = CORNU_F32_ISA_COUNT CORNU__BF16_ISAS(CORNU__ISA_COUNT, , )
} CornuIsa;

#endif
