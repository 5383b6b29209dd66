# Programs with setuid and setgid.
cp /bin/sh ./s && chmod 6755 s && mkdir -p sub/deep && cp /bin/true sub/deep/t && chmod 4711 sub/deep/t && held 'left behind'
