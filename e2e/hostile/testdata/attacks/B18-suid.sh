# Setuid programs of the image.
for p in $(find / -xdev -perm /6000 -type f 2>/dev/null); do held "$p is there and cannot raise"; done
fails 'Authentication|denied|must be run|Cannot|failure|permitted' su -c id
fails 'denied|permitted|Operation' setpriv --reuid=0 id
grep -q '^NoNewPrivs:.1$' /proc/self/status && held nnp || hole 'new privileges can be had'
for c in CapInh CapPrm CapEff CapBnd CapAmb; do grep -q "^$c:.0000000000000000$" /proc/self/status && held $c || hole "$(grep $c /proc/self/status)"; done
grep -q '^Seccomp:.2$' /proc/self/status && held seccomp || hole 'no seccomp filter'
