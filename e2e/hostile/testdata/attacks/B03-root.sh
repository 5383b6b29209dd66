# Programs and settings of the container.
for f in /etc/passwd /usr/bin/git /usr/lib/x /bin/sh /etc/ld.so.preload /var/x /opt/x /root/x /srv/x /run/x /x /abl/x /workspace/x; do
  fails 'Read-only|denied' sh -c ": >> $f"; done
