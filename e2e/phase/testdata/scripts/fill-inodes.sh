# Creates 1000 empty files in a folder that no earlier call has created, and then does nothing.
cd $(mktemp -d many.XXXX)
seq 1 1000 | xargs touch
sleep 60
