# Files for the next call to read.
[ -e ../src/left-by-app ] || [ -e /tmp/left ] || [ -e "$HOME/left" ] && hole 'left by an earlier one'
touch left-by-app /tmp/left "$HOME/left"; echo x >> lib/secret.mjs; held 'a copy of its own'
