# Prints the signs by which a suite could recognize a replay.
sign() { local out; out=$("${@:2}" 2>&1); echo "# sign $1: ${out//$'\n'/ }"; }
sign hosts cat /etc/hosts
sign resolver cat /etc/resolv.conf
sign environment env
sign /tmp ls -A /tmp
sign tests ls -A .
sign processes sh -c 'cat /proc/[0-9]*/comm'
sign interfaces cat /proc/net/route /proc/net/if_inet6
sign listeners sh -c "awk '/ 0A /{print \$8}' /proc/net/tcp | sort -u"
sign name hostname
sign user id
sign cgroup cat /proc/self/cgroup
sign sockets bash -c 'exec 3<>/dev/tcp/app/3000 && printf "GET / HTTP/1.1\r\nHost: app\r\n\r\n" >&3 && read -r -u 3 &&
  awk "NR > 1 {print \$2, \$3, \$4, \$5, \$6, \$8}" /proc/net/unix | sort'
sign mounts sh -c "cut -d ' ' -f4,5 /proc/self/mountinfo | sed -E 's/[A-Z2-7]{26}|[0-9a-f]{64}/X/g' | grep X/ | sort"
