# Killing everything within reach.
kill -STOP 1; kill -KILL 1
kill -0 1 && held 'process 1 is there'
