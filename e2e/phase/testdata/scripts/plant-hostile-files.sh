# Creates one of each dangerous file that a role can create: set-id programs, FIFOs, a socket, a device
# if possible, a nested repository, and files with orders for agents and editors.
set -e
printf '*.log\nout/\n' >.gitignore
mkdir -p out/deep
echo built >out/made
echo logged >x.log
cp /bin/true suid
chmod 6755 suid
cp suid out/deep/suid
chmod 4755 out/deep/suid
mkfifo pipe out/pipe
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('sock')"
mknod dev c 1 3 || true
setcap cap_net_raw+ep suid || true

mkdir nested
(cd nested && git init -q && git config core.fsmonitor 'touch pwned')

mkdir .gemini .claude .vscode
for file in .gemini/settings.json .claude/settings.json .vscode/tasks.json; do echo '{}' >$file; done
echo x >GEMINI.md
for i in $(seq 40); do mkdir a$i && echo x >a$i/CLAUDE.md; done
mkdir -p zz/.husky zz/.claude
echo x >zz/.husky/pre-commit
echo x >zz/.claude/run
chmod 755 zz/.claude/run
