# Creates the file at-GATE and waits for the file go-GATE, at most until the call's timeout.
touch at-GATE
until test -e go-GATE; do sleep 0.02; done
rm at-GATE go-GATE
