# The agent's output file replaced.
rm -f /abl/out/stdout
mv /abl/out/stdout /tmp
ln -sf /etc/passwd /abl/out/stdout
mkfifo /abl/out/x
ls -la /abl/out
exit 0
