# The functions that the attack scripts share.
#
#   held WORDS…       prints that a defence held
#   hole WORDS…       prints that a defence did not hold
#   odd WORDS…        prints that the result is inconclusive
#   fails WORDS CMD…  CMD must fail and print one of the words (joined by |)
#   empty CMD…        CMD must print nothing
#   tries CMD…        CMD must end with exit code 0 for the attack to count
held() { echo "held: $*"; }
hole() { echo "HOLE: $*"; }
odd() { echo "ODD: $*"; }
fails() {
  words=$1; shift
  did=$(printf %s "$*" | head -c 200)
  if said=$("$@" 2>&1 </dev/null); then hole "worked: $did $said"
  elif printf %s "$said" | grep -Eqi -e "$words"; then held "$did"
  else odd "$did failed otherwise: $said"; fi
}
empty() {
  said=$("$@" 2>/dev/null </dev/null | head -c 2000)
  if [ -z "$said" ]; then held "$*"; else hole "$* found: $said"; fi
}
tries() { "$@" >/dev/null 2>&1 </dev/null || odd "could not try: $*"; }
A=$PWD/attacker
# The places where an image of abl contains no file of a project.
PLACES='/abl /dev/shm /etc /home /mnt /root /run /srv /tmp /var /workspace'
