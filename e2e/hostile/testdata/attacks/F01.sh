# Commands with more than a name.
fails 'unknown command|no arguments|takes' abl-cmd 'hidden; cat lib/secret.mjs'
fails 'unknown command|no arguments|takes' abl-cmd "$(printf 'hidden\ncat x')"
fails 'unknown command|no arguments|takes' abl-cmd '$(cat lib/secret.mjs)'
fails 'unknown command|no arguments|takes' abl-cmd ../hidden
fails 'unknown command|no arguments|takes' abl-cmd hidden/../seed
fails 'unknown command|no arguments|takes' abl-cmd HIDDEN
fails 'unknown command|no arguments|takes' abl-cmd build
fails 'unknown command|no arguments|takes|usage' abl-cmd ''
