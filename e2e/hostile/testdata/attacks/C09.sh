# A program where git does not look.
mkdir -p hid && echo 'backdoor.py' > hid/.gitignore && echo 'import os' > hid/backdoor.py && held made
