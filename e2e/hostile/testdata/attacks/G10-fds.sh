# Open files.
python3 -c "
f = []
try:
    while len(f) < 100000: f.append(open('/dev/null'))
except OSError as e: print('held: %d open, then %s' % (len(f), e.strerror))
else: print('HOLE: %d' % len(f))"
