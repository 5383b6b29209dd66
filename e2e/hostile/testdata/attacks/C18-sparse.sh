# A sparse file.
echo x > one && ln one two && ln one three && dd if=/dev/urandom of=noise bs=1M count=3 2>/dev/null && printf 'no end' > tail && held made
