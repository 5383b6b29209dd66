# Files that are too large to read.
truncate -s 1G big && truncate -s 1900M bigger && held made
