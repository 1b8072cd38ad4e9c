# libmicrohttpd is optional: its header, and the name under which the dashboard and cornu serve load
# the library.

MICROHTTPD ?= $(firstword $(wildcard $(SYSROOT)/usr/include/microhttpd.h \
                                     $(SYSROOT)/usr/local/include/microhttpd.h))
http_name  := $(if $(MICROHTTPD),$(shell $(CROSS)objdump -p \
                  "$$($(CC) -print-file-name=libmicrohttpd.so)" 2>/dev/null | \
                  sed -n 's/^ *SONAME *//p'))
http_cflags = $(if $(MICROHTTPD),-DCORNU_MICROHTTPD='"$(or $(http_name),libmicrohttpd.so)"')
$(call stamp,http,$(subst ',,$(http_cflags)))

http_objects = $(addprefix $(BUILD)/obj/,nn/pages/dashboard/server.o nn/pages/dashboard/http_library.o \
                   examples/cornu/serve/http/http.o examples/cornu/serve/http/library.o)
$(http_objects): $(BUILD)/http
$(http_objects): all_cflags += $(http_cflags)
