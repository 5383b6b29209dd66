# The user's git settings.
git config --global core.fsmonitor ./evil; git config --global alias.status '!touch /tmp/P'
fails 'Read-only|denied' git config --system core.fsmonitor ./evil
[ -s "$HOME/.gitconfig" ] && held 'in a home that goes away'
