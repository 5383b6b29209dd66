# Files of a size that nobody can read.
truncate -s 1G big && truncate -s 1900M bigger && held made
