# the lab: hosts in network namespaces, joined by links that linkem emulates
noinst_PROGRAMS += linkem
linkem_SOURCES = tests/lab/linkem/main.c tests/lab/linkem/settings.c tests/lab/linkem/lane.c \
	tests/lab/linkem/surgery.c tests/lab/linkem/control.c tests/lab/linkem/linkem.h
