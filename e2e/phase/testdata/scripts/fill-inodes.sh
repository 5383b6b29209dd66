# Makes 1000 empty files in a folder that no call before has made, and then does nothing.
cd $(mktemp -d many.XXXX)
seq 1 1000 | xargs touch
sleep 60
