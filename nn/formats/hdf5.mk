# libhdf5 is optional: its header, of Debian's serial build or another one, and the name under which
# hdf5_library.c loads the library when a file needs it.

HDF5       ?= $(firstword $(wildcard $(SYSROOT)/usr/include/hdf5/serial/hdf5.h \
                                     $(SYSROOT)/usr/include/hdf5.h \
                                     $(SYSROOT)/usr/local/include/hdf5.h))
hdf5_file   = libhdf5$(if $(findstring /serial/,$(HDF5)),_serial).so
hdf5_name  := $(if $(HDF5),$(shell $(CROSS)objdump -p "$$($(CC) -print-file-name=$(hdf5_file))" \
                               2>/dev/null | sed -n 's/^ *SONAME *//p'))
hdf5_cflags = $(if $(HDF5),-DCORNU_HDF5=$(or $(hdf5_name),$(hdf5_file)) -isystem $(dir $(HDF5)))
$(call stamp,hdf5,$(hdf5_cflags))

hdf5_objects = $(BUILD)/obj/nn/formats/hdf5.o $(BUILD)/obj/nn/formats/hdf5_library.o
$(hdf5_objects): $(BUILD)/hdf5
$(hdf5_objects): all_cflags += $(hdf5_cflags)
