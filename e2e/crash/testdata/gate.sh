# Creates the file "at" and removes it after the test has created the file "go". The call's timeout
# ends the wait at the latest.
touch at
until [ -e go ]; do sleep 0.02; done
rm at go
