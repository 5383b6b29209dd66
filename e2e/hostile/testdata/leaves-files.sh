# A call that leaves files and a process for the next one.
touch /tmp/x /dev/shm/x "$HOME/x"
mkdir -p "$HOME/.gemini"
echo x > "$HOME/.gemini/settings.json"
git config --global alias.st '!touch /tmp/P'
(setsid sleep 3000 >/dev/null 2>&1 &)
