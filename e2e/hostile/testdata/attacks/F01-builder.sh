# The Verifier's commands, and the broker.
fails 'unknown command' abl-cmd hidden
fails 'unknown command|works only where' abl-cmd restart
jq -e '.url // empty' /abl/in/commands.json && hole 'it knows the broker' || held 'no broker'
empty curl -s -m 3 http://app:7070/list http://app:3000/
