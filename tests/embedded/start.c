/* What a Cortex-M does at reset: its stack, its data, and main. Output goes through semihosting. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start__[], __bss_end__[];
extern uint32_t __stack[];

int  main(void);
void initialise_monitor_handles(void);
void _init(void) {}
void _fini(void) {}

void _start(void)
{
    *(volatile uint32_t *)0xE000ED88 |= 0xF << 20;   /* the floating-point unit */
    for (uint32_t *to = __data_start, *from = __data_load; to < __data_end;) *to++ = *from++;
    for (uint32_t *to = __bss_start__; to < __bss_end__;) *to++ = 0;
    initialise_monitor_handles();
    exit(main());
}

__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {
    __stack, (const void *)_start
};
