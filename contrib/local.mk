# SPDX-License-Identifier: BSD-3-Clause
# what goes beside the programs: a configuration, files for systemd, its companions and those who watch
EXTRA_DIST += contrib/convertd.conf contrib/systemd/convertd.service.in contrib/systemd/convertize-paths.service.in
EXTRA_DIST += contrib/convertgw.conf contrib/systemd/convertgw.service.in
EXTRA_DIST += contrib/convertize.conf contrib/profile.d/convertize.sh.in contrib/systemd/60-convertize.in
EXTRA_DIST += contrib/prometheus/alerts_test.yml contrib/valgrind/libconvert.supp
# a Python package of its own, which pip installs
EXTRA_DIST += contrib/scapy/README.md contrib/scapy/pyproject.toml contrib/scapy/convert_scapy/__init__.py \
	contrib/scapy/convert_scapy/__main__.py contrib/scapy/tests/test_convert_scapy.py
nobase_dist_doc_DATA += contrib/grafana/convertd.json contrib/prometheus/alerts.yml contrib/prometheus/scrape.yml \
	contrib/container/Containerfile \
	contrib/kubernetes/convertd.yaml

EXTRA_DIST += contrib/arch/PKGBUILD contrib/rpm/libconvert.spec contrib/rpm/rpmlint.toml
EXTRA_DIST += contrib/openwrt/README.md contrib/openwrt/libconvert/Makefile contrib/openwrt/libconvert/files/convertd.capabilities \
	contrib/openwrt/libconvert/files/convertd.config contrib/openwrt/libconvert/files/convertd.firewall \
	contrib/openwrt/libconvert/files/convert.init contrib/openwrt/libconvert/files/convertgw.config

noinst_DATA = contrib/systemd/convertd.service contrib/systemd/convertize-paths.service contrib/profile.d/convertize.sh contrib/systemd/60-convertize
CLEANFILES += contrib/systemd/convertd.service contrib/systemd/convertize-paths.service contrib/profile.d/convertize.sh contrib/systemd/60-convertize
contrib/systemd/convertd.service: contrib/systemd/convertd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) contrib/systemd && \
	sed -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(top_srcdir)/contrib/systemd/convertd.service.in >$@.tmp && mv $@.tmp $@
contrib/systemd/convertgw.service: contrib/systemd/convertgw.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) contrib/systemd && \
	sed -e 's|@sbindir[@]|$(sbindir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(top_srcdir)/contrib/systemd/convertgw.service.in >$@.tmp && mv $@.tmp $@
contrib/systemd/convertize-paths.service: contrib/systemd/convertize-paths.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) contrib/systemd && \
	sed -e 's|@bindir[@]|$(bindir)|g' $(top_srcdir)/contrib/systemd/convertize-paths.service.in >$@.tmp && mv $@.tmp $@
contrib/profile.d/convertize.sh: contrib/profile.d/convertize.sh.in Makefile
	$(AM_V_GEN)$(MKDIR_P) contrib/profile.d && \
	sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(top_srcdir)/contrib/profile.d/convertize.sh.in >$@.tmp && mv $@.tmp $@
contrib/systemd/60-convertize: contrib/systemd/60-convertize.in Makefile
	$(AM_V_GEN)$(MKDIR_P) contrib/systemd && \
	sed -e 's|@bindir[@]|$(bindir)|g' $(top_srcdir)/contrib/systemd/60-convertize.in >$@.tmp && \
	chmod +x $@.tmp && mv $@.tmp $@

if HAVE_GATEWAY
noinst_DATA += contrib/systemd/convertgw.service
endif
CLEANFILES += contrib/systemd/convertgw.service

# Sessions are left alone by both until convertize.conf says otherwise. The file for login shells has no effect below other prefixes
# than /usr, whose sysconfdir is /etc.
profiledir = $(sysconfdir)/profile.d
nodist_profile_DATA = contrib/profile.d/convertize.sh
if INSTALL_USER_ENVIRONMENT
nodist_systemduserenvgen_SCRIPTS = contrib/systemd/60-convertize
endif

# Where the shells look below /usr and /usr/local; bash-completion.pc would name a directory outside of other prefixes.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = contrib/completions/convertd.bash contrib/completions/convertize.bash
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = contrib/completions/_convertd contrib/completions/_convertize
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_fishcompletion_DATA = contrib/completions/convertd.fish contrib/completions/convertize.fish
if HAVE_GATEWAY
dist_bashcompletion_DATA += contrib/completions/convertgw.bash
dist_zshcompletion_DATA += contrib/completions/_convertgw
dist_fishcompletion_DATA += contrib/completions/convertgw.fish
endif

if INSTALL_UNITS
nodist_systemdsystemunit_DATA = contrib/systemd/convertd.service contrib/systemd/convertize-paths.service
if HAVE_GATEWAY
nodist_systemdsystemunit_DATA += contrib/systemd/convertgw.service
endif
endif
if INSTALL_SOCKET_UNIT
dist_systemdsystemunit_DATA = contrib/systemd/convertd.socket
endif
if INSTALL_SYSCTL
dist_sysctl_DATA = contrib/sysctl.d/50-convertd.conf
endif
if INSTALL_SYSUSERS
dist_sysusers_DATA = contrib/sysusers.d/convertd.conf contrib/sysusers.d/convertize.conf
if HAVE_GATEWAY
dist_sysusers_DATA += contrib/sysusers.d/convertgw.conf
endif
endif
if INSTALL_DISSECTOR
dist_wiresharkplugin_DATA = contrib/wireshark/convert.lua
endif

# Automake's rule, but for the umask: sudo keeps a strict one of the caller's, and then neither services nor users could read the
# directories that are made.
install-am: all-am
	@umask go+rx && $(MAKE) $(AM_MAKEFLAGS) install-exec-am install-data-am

# A configuration that is there is the administrator's.
CONFIGURATIONS = convertd/convertd.conf convertize.conf
if HAVE_GATEWAY
CONFIGURATIONS += convertgw/convertgw.conf
endif
install-data-local:
	for file in $(CONFIGURATIONS); do \
		$(MKDIR_P) "$(DESTDIR)$(sysconfdir)/`dirname $$file`" && to="$(DESTDIR)$(sysconfdir)/$$file" && \
		{ test -e "$$to" || $(INSTALL_DATA) "$(top_srcdir)/contrib/`basename $$file`" "$$to"; } || exit 1; \
	done
uninstall-local:
	for file in $(CONFIGURATIONS); do \
		to="$(DESTDIR)$(sysconfdir)/$$file"; \
		! cmp -s "$(top_srcdir)/contrib/`basename $$file`" "$$to" || rm "$$to"; \
		rmdir "$(DESTDIR)$(sysconfdir)/`dirname $$file`" 2>/dev/null || :; \
	done

# for Alpine Linux, whose builders take them out of the tarball
EXTRA_DIST += contrib/alpine/APKBUILD \
	contrib/alpine/convertd.confd \
	contrib/alpine/convertd.initd \
	contrib/alpine/convertd.pre-install
