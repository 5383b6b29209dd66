# Commands with more than a name.
fails 'no command|no arguments|takes' abl-cmd 'hidden; cat lib/secret.mjs'
fails 'no command|no arguments|takes' abl-cmd "$(printf 'hidden\ncat x')"
fails 'no command|no arguments|takes' abl-cmd '$(cat lib/secret.mjs)'
fails 'no command|no arguments|takes' abl-cmd ../hidden
fails 'no command|no arguments|takes' abl-cmd hidden/../seed
fails 'no command|no arguments|takes' abl-cmd HIDDEN
fails 'no command|no arguments|takes' abl-cmd build
fails 'no command|no arguments|takes|usage' abl-cmd ''
