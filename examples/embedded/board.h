/* What main.c needs of a board; host.c has it for a program on this machine. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Waits for a picture, 28 by 28 numbers from 0 to 1; 0: there will be none. */
int  board_picture(float *x);
void board_show(int digit, float certainty);
/* Whether somebody says which digit it was. */
int  board_correction(int32_t *label);

/* Bytes in flash or another memory that stays; load gives 0 if there are none yet. */
int  board_load(unsigned char *bytes, size_t size);
void board_save(const unsigned char *bytes, size_t size);

#endif
