/* Threads of the library's own. */
#ifndef CORNU_DEVICE_THREAD_INTERNAL_H
#define CORNU_DEVICE_THREAD_INTERNAL_H

#include <pthread.h>

/* pthread_create, but the thread takes no signals: those go to the program's own threads. */
int cornu__thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
