# Memory.
python3 -c "b = bytearray(4 << 30); b[::4096] = b'x' * len(b[::4096])" >/dev/null 2>&1; [ $? != 0 ] && held "ended with $?" || hole 'four gigabytes'
