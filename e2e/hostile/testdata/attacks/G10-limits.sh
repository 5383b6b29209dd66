# Raising its own limits.
$A rlimit,nice
fails 'not permitted|cannot|denied|exceed' sh -c 'ulimit -H -f unlimited && ulimit -H -f 99999999999'
fails 'not permitted|cannot|denied|exceed|Illegal' sh -c 'ulimit -H -n 1048577'
ulimit -c | grep -qx 0 && held 'no core files' || hole 'core files'
