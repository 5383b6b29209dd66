#!/bin/bash
# A separate engine, in its own network and mount namespaces, has a trouble during a call: signal $2
# stops it, and it is started again. For "images" all its images are removed, and loaded again once
# abl has ended. Run under unshare -n -m.
#   private-engine.sh FOLDER TROUBLE ABL [EVENT]
# FOLDER has images.tar, and a project in p whose Builder creates src/at-engine and waits for
# src/go-engine. With EVENT the trouble starts at the first event that contains this text.
set -u
dir=$1 trouble=$2 abl=$3 event=${4:-}
happened() { if [ "$event" ]; then grep -q -e "$event" "$dir/events"; else [ -e src/at-engine ]; fi; }
ip link set lo up
mount -t tmpfs none /run
start() {
	dockerd --data-root "$dir/root" --exec-root "$dir/exec" -p "$dir/pid" -H "unix://$dir/s" >>"$dir/dockerd.log" 2>&1 &
	engine=$!
	for _ in $(seq 300); do
		docker version >/dev/null 2>&1 && return
		sleep 0.2
	done
	tail -5 "$dir/dockerd.log"
	exit 99
}
export DOCKER_HOST=unix://$dir/s
start
docker load -q <"$dir/images.tar" >/dev/null || exit 98
cd "$dir/p" || exit 97
"$abl" phase 1 --json >"$dir/events" &
run=$!
until happened || ! kill -0 $run 2>/dev/null; do sleep 0.1; done
if [ "$trouble" = images ]; then
	docker images -q | xargs docker rmi -f >/dev/null
	touch src/go-engine
	wait $run
	[ $? = 7 ] || { echo "abl without its images ended with another code than 7" >&2; exit 95; }
	docker load -q <"$dir/images.tar" >/dev/null || exit 94
	"$abl" phase 1 --json >>"$dir/events" &
	run=$!
else
	kill "-$trouble" $engine
	wait $engine
	[ "$event" ] || touch src/go-engine
	sleep 2
	start
fi
wait $run
code=$?
cat "$dir/events"
left=$(docker ps -aq; docker network ls -q --filter label=abl.project; docker volume ls -q)
docker ps -aq | xargs -r docker rm -f >/dev/null
kill -TERM $engine
wait $engine
[ -z "$left" ] || { echo "left: $left" >&2; exit 96; }
exit $code
