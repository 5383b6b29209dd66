# Listens on every address of the Verifier's container, and makes the app search for it by these
# addresses and names (apps/runs-commands.mjs).
python3 -m http.server 9999 >/dev/null 2>&1 &
until curl -s http://127.0.0.1:9999 >/dev/null; do sleep 0.02; done
echo listens
ask() { curl -s "http://app:3000/?$(printf %s "$1" | jq -sRr @uri)"; }
ask 'for at in 127.0.0.1 localhost app $(hostname) $(hostname -i); do
  curl -s -m 2 http://$at:9999 >/dev/null && echo "BAD: reached the Verifier at $at"
done
echo looked'
[ "$(curl -s http://app:3000/)" = ok ] || exit 1
[ ! -e /abl/in/broker.json ] || echo 'BAD: the Verifier has the orders of the broker'
