# Empty files in tmpfs.
cd /tmp && mkdir i && python3 -c "
n = 0
try:
    while n < 200000: open('i/%d' % n, 'w').close(); n += 1
except OSError as e: print('held: %d files, then %s' % (n, e.strerror))
else: print('HOLE: %d files' % n)"; rm -rf i
