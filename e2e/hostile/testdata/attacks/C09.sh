# A program in an ignored place.
mkdir -p hid && echo 'backdoor.py' > hid/.gitignore && echo 'import os' > hid/backdoor.py && held made
