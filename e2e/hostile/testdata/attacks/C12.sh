# Nested repositories that run programs.
for d in nested deep/er; do
  mkdir -p $d/.git/hooks &&
  printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch it-ran; false\n' > $d/.git/config &&
  echo 'ref: refs/heads/main' > $d/.git/HEAD &&
  mkdir $d/.git/objects $d/.git/refs &&
  echo x > $d/kept
done
held made
