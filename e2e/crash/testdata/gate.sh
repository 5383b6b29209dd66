# Makes the file at, and removes it once the test has made the file go. The call's timeout ends it
# at the latest.
touch at
until [ -e go ]; do sleep 0.02; done
rm at go
