# Arguments, options, and a megabyte of arguments.
fails 'no arguments|takes' abl-cmd hidden x
fails 'no arguments|takes|no command|flag|option' abl-cmd hidden --help=@/src/lib/secret.mjs
fails 'no such file' /abl/bin/abl-broker hidden
fails 'no arguments|takes|too long' abl-cmd hidden "$(head -c 100000 /dev/zero | tr '\000' a)"
fails 'phase|no |number' abl-cmd get-spec ../../etc/passwd
fails 'phase|no |number' abl-cmd get-spec 99
