# SPDX-License-Identifier: BSD-3-Clause
# what goes beside the programs: a configuration, files for systemd, its companions and those who watch
EXTRA_DIST += contrib/convertd.conf contrib/systemd/convertd.service.in
EXTRA_DIST += contrib/prometheus/alerts_test.yml contrib/valgrind/libconvert.supp
nobase_dist_doc_DATA += contrib/grafana/convertd.json contrib/prometheus/alerts.yml contrib/prometheus/scrape.yml \
	contrib/kubernetes/Containerfile contrib/kubernetes/convertd.yaml

noinst_DATA = contrib/systemd/convertd.service
CLEANFILES += contrib/systemd/convertd.service
contrib/systemd/convertd.service: contrib/systemd/convertd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) contrib/systemd && \
	sed -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(top_srcdir)/contrib/systemd/convertd.service.in >$@.tmp && mv $@.tmp $@

if INSTALL_UNITS
nodist_systemdsystemunit_DATA = contrib/systemd/convertd.service
endif
if INSTALL_SOCKET_UNIT
dist_systemdsystemunit_DATA = contrib/systemd/convertd.socket
endif
if INSTALL_SYSCTL
dist_sysctl_DATA = contrib/sysctl.d/50-convertd.conf
endif
if INSTALL_SYSUSERS
dist_sysusers_DATA = contrib/sysusers.d/convertd.conf
endif

# A configuration that is there is the administrator's.
CONVERTD_CONF = $(DESTDIR)$(sysconfdir)/convertd/convertd.conf
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(sysconfdir)/convertd'
	test -e '$(CONVERTD_CONF)' || $(INSTALL_DATA) $(top_srcdir)/contrib/convertd.conf '$(CONVERTD_CONF)'
uninstall-local:
	! cmp -s $(top_srcdir)/contrib/convertd.conf '$(CONVERTD_CONF)' || rm '$(CONVERTD_CONF)'
	rmdir '$(DESTDIR)$(sysconfdir)/convertd' 2>/dev/null || :

# for Alpine Linux, whose builders take them out of the tarball
EXTRA_DIST += contrib/alpine/APKBUILD \
	contrib/alpine/convertd.confd \
	contrib/alpine/convertd.initd \
	contrib/alpine/convertd.pre-install
