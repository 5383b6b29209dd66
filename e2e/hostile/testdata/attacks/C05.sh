# Links and FIFOs in place of git's files.
fails 'Read-only|denied' ln -sf /etc/passwd .git/index
fails 'Read-only|denied' ln -sf ../../.env .git/HEAD
fails 'Read-only|denied' rm -f .git/HEAD
fails 'Read-only|denied' mkfifo .git/MERGE_HEAD
