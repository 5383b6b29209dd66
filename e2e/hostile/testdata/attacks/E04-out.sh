# The internet, by address and by name.
$A dials 1.1.1.1:80 8.8.8.8:53 9.9.9.9:443 example.com:80 example.org:443
empty curl -s -m 3 http://1.1.1.1/ http://example.com/
empty sh -c 'echo | timeout 3 openssl s_client -connect 1.1.1.1:443 | grep BEGIN'
