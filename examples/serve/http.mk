# libmicrohttpd is optional: cornu_serve is linked with it where its header is installed, and else
# says what to install.

MICROHTTPD ?= $(firstword $(wildcard $(SYSROOT)/usr/include/microhttpd.h \
                                     $(SYSROOT)/usr/local/include/microhttpd.h))
http_cflags = $(if $(MICROHTTPD),-DCORNU_MICROHTTPD)
$(call stamp,http,$(http_cflags))

http_object = $(BUILD)/obj/examples/serve/http.o
$(http_object): $(BUILD)/http
$(http_object): all_cflags += $(http_cflags)
%/cornu_serve: program_libraries = $(if $(MICROHTTPD),-lmicrohttpd)
