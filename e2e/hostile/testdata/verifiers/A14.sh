# A program that outlives the agent and then removes the file.
agent=$PPID
printf "SPEC: GET / → 200 with the text ok\nINPUT: GET /\nOBSERVED: nothing\n" > failed_specs.md
(setsid sh -c "while kill -0 $agent; do sleep 0.02; done; rm -f failed_specs.md; mkdir -p verifier_reports" >/dev/null 2>&1 &)
