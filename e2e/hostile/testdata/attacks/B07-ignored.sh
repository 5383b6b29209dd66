# The same in ignored files.
mkdir -p skipped/.git && echo skipped >> .gitignore && cp /bin/sh skipped/s && cp /bin/sh skipped/.git/s && chmod 6755 skipped/s skipped/.git/s && held 'left behind'
