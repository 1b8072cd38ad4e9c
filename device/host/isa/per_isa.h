/* Names in files that are compiled once per instruction set: CORNU__PER_ISA(cornu__vectors) is
 * cornu__vectors_avx2 where CORNU_ISA_NAME is avx2. */
#ifndef CORNU_DEVICE_HOST_ISA_PER_ISA_H
#define CORNU_DEVICE_HOST_ISA_PER_ISA_H

#define CORNU__JOIN2(a, b) a##_##b
#define CORNU__JOIN(a, b)  CORNU__JOIN2(a, b)
#define CORNU__PER_ISA(name) CORNU__JOIN(name, CORNU_ISA_NAME)

#endif
