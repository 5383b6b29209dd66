# Makes the file at-GATE and waits for the file go-GATE. The call's timeout ends it at the latest.
touch at-GATE
until test -e go-GATE; do sleep 0.02; done
rm -f at-GATE go-GATE
