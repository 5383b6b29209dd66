# Sockets.
$A socket $PWD/sock && $A socket $PWD/sub/sock2; [ -S sock ] && [ -S sub/sock2 ] && held 'left behind'
