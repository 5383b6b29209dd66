# IPv6.
[ -z "$(grep -v ' lo$' /proc/net/if_inet6 2>/dev/null)" ] && held 'no address' || hole "$(cat /proc/net/if_inet6)"
$A dials '[2606:4700:4700::1111]:80' '[2001:4860:4860::8888]:53' '[fd00:ec2::254]:80' '[fe80::1%eth0]:80'
