# Prints the surroundings of the Verifier of a command-line program, and checks that no app listens.
set -e
abl-cmd list
env | grep ABL_
ls /workspace
echo x y | abl-cmd app words
abl-cmd restart
ls /tmp/exchange
if curl -s --max-time 2 http://app:3000/; then exit 1; fi
